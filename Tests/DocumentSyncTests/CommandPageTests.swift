import Foundation
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// The objects that the page on the command line names, of those that the
/// library makes.
struct CommandPageTests {
  private let page: Page
  private let client = ClientIdentifier.random()
  private let hash = ContentHash(of: [1])

  init() throws { page = try Page("Documentation/CommandLine.md") }

  private func expect(
    _ name: String, _ full: some Encodable, _ least: some Encodable,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let said = try page.keys(ofItem: name)
    let made = try Page.keys(full: full, least: least)
    #expect(said == made, "\(name)", sourceLocation: sourceLocation)
  }

  private var wholeStore: WholeStoreDescription {
    WholeStoreDescription(
      client: client, number: 1, hash: hash, vector: VersionVector(), byteCount: 1,
      storeByteCount: 1)
  }

  @Test func reportHasTheKeysThatThePageNames() throws {
    var report = SyncReport()
    let least = report
    report.housekeeping = VacuumReport()
    var rebootstrap = SyncReport.Rebootstrap(reason: .gap, backup: "x", wholeStore: wholeStore)
    let short = rebootstrap
    rebootstrap.merged = MergedRows()
    report.rebootstrap = rebootstrap
    try expect("report", report, least)
    try expect("rebootstrap", rebootstrap, short)
    try expect("merged", MergedRows(), MergedRows())
    try expect("wholeStore", wholeStore, wholeStore)
  }

  @Test func partsOfAReportHaveTheKeysThatThePageNames() throws {
    func set(_ byteCount: Int?) -> SyncReport.ChangeSet {
      SyncReport.ChangeSet(
        client: client, number: 1, hash: hash, rowCount: 1, byteCount: byteCount)
    }
    try expect("changeSet", set(1), set(nil))
    func wait(_ path: String?) -> SyncReport.Wait {
      SyncReport.Wait(client: client, number: 1, reason: .fork, message: "x", path: path)
    }
    try expect("wait", wait("x"), wait(nil))
    let incarnation = Incarnation(
      ancestor: client, client: client, reason: .copied, isAncestorGone: true, milliseconds: 1)
    try expect("incarnation", incarnation, incarnation)
    var warning = SyncWarning(.parked, message: "x")
    let least = warning
    warning.table = "x"
    warning.reason = "x"
    warning.client = client
    warning.milliseconds = 1
    warning.conflict = 1
    try expect("warning", warning, least)
    try expect("vacuum", VacuumReport(), VacuumReport())
    func files(_ member: ClientIdentifier?) -> VacuumReport.Files {
      VacuumReport.Files(
        kind: .markers, client: client, first: 1, last: 1, count: 1, reason: "x", member: member)
    }
    try expect("files", files(client), files(nil))
  }

  @Test func documentsAndClientsHaveTheKeysThatThePageNames() throws {
    var deletion = DocumentDescription.Deletion(client: client)
    let short = deletion
    deletion.clientDescription = "x"
    deletion.milliseconds = 1
    try expect("deletion", deletion, short)
    var contents = DocumentDescription.Contents()
    let nothing = contents
    contents.lastSyncMilliseconds = 1
    try expect("contents", contents, nothing)
    var document = DocumentDescription(
      identifier: "x", name: .random(), generation: .random(), ordinal: 1, description: "x",
      creator: client, createdMilliseconds: 1, isDeleted: true)
    let living = document
    document.deletion = deletion
    document.contents = contents
    try expect("document", document, living)

    var state = ClientDescription.State(
      revision: 1, changeHead: 1, applied: nil, milliseconds: nil)
    let unread = state
    state.applied = VersionVector()
    state.milliseconds = 1
    state.lacking = []
    try expect("state", state, unread)
    var described = ClientDescription(client: client)
    let unknown = described
    described.ancestor = client
    described.registeredMilliseconds = 1
    described.document = .random()
    described.leftMilliseconds = 1
    described.removal = deletion
    described.state = state
    try expect("client", described, unknown)
    #expect(
      try page.values(ofItem: "client", key: "status")
        == Set(ClientDescription.Status.allCases.map(\.rawValue)))
  }

  /// Of an open set the members are in the code alone.
  @Test(arguments: [
    ("wait", "reason", "Sources/DocumentSync/Values/SyncReport.swift", "Reason"),
    ("warning", "code", "Sources/SyncModel/SyncWarning.swift", "Code"),
    ("rebootstrap", "reason", "Sources/DocumentSync/Values/SyncReport+Rebootstrap.swift", "Reason"),
  ])
  func openSetsAreNamedInFull(item: String, key: String, file: String, type: String) throws {
    let code = try Page(file).text
    let pattern = try Regex<(Substring, Substring)>(
      "static let \\w+ = \(type)\\(rawValue: \"(\\w+)\"\\)")
    let made = Set(code.matches(of: pattern).map { String($0.output.1) })
    #expect(made.count > 3)
    #expect(try page.values(ofItem: item, key: key) == made)
  }
}
