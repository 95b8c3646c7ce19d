import Foundation
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync
@testable import docsync

/// The page on the command line, held against the files of `Fixtures/JSON` both ways.
@Suite struct JSONPageTests {
  private let page: JSONPage

  init() throws { page = try JSONPage() }

  /// The object that a file contains, by the beginning of its name.
  private static let objects = [
    ("error-", "failure"), ("conflicts-show", "one conflict"), ("conflicts-re", "one conflict"),
    ("conflicts-polic", "policy"), ("vacuum", "vacuum result"),
    ("delete-document", "removal result"), ("remove-all", "removal result"),
    ("remove-client", "remove-client"), ("status-several", "status of several stores"),
  ]

  private static func object(_ file: String) -> String {
    if file.hasPrefix("object-") {
      return file.dropFirst(7).replacingOccurrences(of: "-", with: " ")
    }
    return objects.first { file.hasPrefix($0.0) }?.1
      ?? String(file.prefix { $0 != "-" })
  }

  private func check() throws -> Set<JSONPage.Place> {
    var seen: Set<JSONPage.Place> = []
    let names = try FileManager.default.contentsOfDirectory(atPath: Golden.folder.path)
      .filter { $0.hasSuffix(".json") }
    #expect(names.count > 50)
    for name in names {
      let data = try Data(contentsOf: Golden.folder.appending(path: name))
      try page.check(
        JSONSerialization.jsonObject(with: data), "*\(Self.object(String(name.dropLast(5))))*",
        at: name, &seen)
    }
    return seen
  }

  @Test func theFilesHaveOnlyTheKeysOfThePage() throws {
    _ = try check()
  }

  @Test func eachKeyOfThePageIsInAFile() throws {
    let seen = try check()
    for (name, keys) in page.objects {
      for key in keys.keys where !seen.contains(JSONPage.Place(object: name, key: key)) {
        Issue.record("no file has `\(key)` of \(name)")
      }
    }
  }

  @Test func eachObjectIsNamedByACommandOrByAnotherObject() {
    #expect(page.objects.count > 40)
    #expect(
      Set(page.objects.keys).subtracting(page.commands.keys).subtracting(page.references())
        == ["entry"])
    #expect(Set(page.commands.keys).union(page.references()).subtracting(page.objects.keys) == [])
  }

  /// Objects with keys that are rare at a command line.
  @Test func objectsWithAllTheirKeys() throws {
    let client = ClientIdentifier(bits: Bits128(high: 1, low: 2))
    let hash = ContentHash(of: [1])
    var warning = SyncWarning(.clockAhead, table: "notes", message: "a sentence")
    warning.names = ["title"]
    warning.reason = "check"
    warning.client = client
    warning.milliseconds = 1
    warning.conflict = 1
    var vacuum = VacuumReport()
    vacuum.kept = [
      VacuumReport.Files(
        kind: .markers, client: client, first: 1, last: 2, count: 2, reason: "a sentence",
        member: client)
    ]
    var report = SyncReport()
    report.sent = [
      SyncReport.ChangeSet(client: client, number: 1, hash: hash, rowCount: 1, byteCount: 1)
    ]
    report.waiting = [
      SyncReport.Wait(
        client: client, number: 1, reason: .fork, message: "a sentence", path: "a path")
    ]
    report.incarnations = [
      Incarnation(
        ancestor: client, client: client, reason: .copied, isAncestorGone: true, milliseconds: 1)
    ]
    report.warnings = [warning]
    report.housekeeping = vacuum
    report.rebootstrap = SyncReport.Rebootstrap(
      reason: .gap, backup: "a path",
      wholeStore: WholeStoreDescription(
        client: client, number: 1, hash: hash,
        vector: VersionVector([client: VersionVector.Entry(number: 1, hash: hash)]),
        byteCount: 1, storeByteCount: 1), merged: MergedRows(), warnings: [warning])
    try expect("object-report", SyncReportJSON(report))

    let failure = Failure(
      code: "storeBusy", message: "a sentence", path: "a path", remedy: "a sentence")
    try expect(
      "object-watch-event",
      SchemaJSON(
        Watch.Line(
          event: "synchronized", store: "a.db", atMilliseconds: 1, reasons: ["timer"],
          report: SyncReportJSON(SyncReport()), error: failure)))
    try expect(
      "object-watch-end",
      SchemaJSON(
        Watch.Result(atMilliseconds: 1, stores: [.init(store: "a.db", error: failure)])))

    try expect(
      "object-hint",
      SchemaHintJSON(
        StorePlan.Hint(kind: .keyMissing, table: "tags", column: "name", rowCount: 2)))

    var replaced = ReplacedStore()
    replaced.unreadable = "a sentence"
    try expect("object-replaced", ReplacedStoreJSON(replaced))
    var dropped = Conflict.Dropped()
    (dropped.firstMilliseconds, dropped.lastMilliseconds) = (1, 2)
    try expect("object-dropped", DroppedConflictsJSON(dropped))
    var places = Conflict.Places(inTable: 1)
    places.archive = "a.db-docsync-conflicts"
    places.problem = "a sentence"
    try expect(
      "object-conflicts",
      SchemaJSON(
        Conflicts.List(
          store: "a.db", openConflicts: 0, dropped: DroppedConflictsJSON(dropped),
          places: ConflictPlacesJSON(places), conflicts: [], next: 7)))
    try expect(
      "object-status",
      SchemaJSON(
        Status.Result(
          store: "a.db", document: "a", application: "docsync", directory: "shared",
          isDirectoryThere: true, directoryState: .there, client: client.description,
          clientName: "A", unsentEdits: 0, unsentChangeSets: 0, lastNumber: 0,
          applied: VectorJSON(VersionVector()), waiting: [], openConflicts: 0, parked: [],
          tables: [], leftOut: NamedValues([:]), unknownNames: [], incompleteNames: [],
          rowsWithoutKey: NamedValues([:]), conflictArchiveProblem: "a sentence")))
    try expect(
      "object-pending",
      SchemaJSON(
        Pending.Result(
          store: "a.db", unsealedCount: 0, unpublishedCount: 0, tooLargeCount: 0, changes: [],
          hasMore: false, incompleteTables: ["tags"])))
    let side = Conflict.Side(stamp: nil, cells: nil)
    let conflict = Conflict(
      number: 1, milliseconds: 1, kind: .cell, table: "notes",
      identity: RowIdentity(bytes: [1, 2]), key: [], column: "title", base: .integer(1),
      local: side,
      remote: side, rule: .resolve, outcome: .local, status: .open, message: "a sentence")
    try expect("object-conflict", ConflictJSON(conflict, names: ClientNames()))
    try expect(
      "object-finding",
      FindingJSON(
        VerifyReport.Finding(.rowWithoutKey, table: "notes", "a sentence", detail: "more"),
        at: CommandPlace()))
    let closed = FindingJSON(
      VerifyReport.Finding(.groupCannotWrite, path: "ClientDevices", "a sentence"),
      at: CommandPlace())
    try expect(
      "object-init",
      SchemaJSON(
        Init.Result(
          store: "a.db", directory: "shared", document: "a", application: "docsync",
          client: client.description, tables: [], leftOut: NamedValues([:]), likelyReferences: [],
          hints: [], findings: [closed], isDryRun: false)))
    try expect(
      "object-join",
      SchemaJSON(
        Join.Result(
          store: "a.db", directory: "shared", document: "a", application: "docsync",
          client: client.description, rowCount: 1, waiting: [], openConflicts: 0, parkedCount: 0,
          findings: [closed])))

    var table = TableChanges(
      table: "tags", identity: .primaryKey, keyColumns: ["name"], columns: [])
    table.actions = [RowAction.delete.rawValue]
    table.times = [HybridTime(milliseconds: 1)]
    table.shapes = [[]]
    table.rowShapes = [0]
    table.keys[0].append(.text(Array("red".utf8)))
    table.moves = [RowMove(row: 0, destination: RowIdentity(bytes: [1, 2]))]
    let set = SyncChangeSet(
      header: SyncChangeSet.Header(
        root: .random(), document: .random(), generation: .random(), client: client, number: 1,
        previous: nil), dependencies: VersionVector(), schema: hash, tables: [table])
    let changes = ChangeSetJSON(set, hash: hash, byteCount: 1, clientName: nil)
    try expect("object-changed-row", changes.tables[0].rows[0])
  }

  private func expect(
    _ file: String, _ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let object = try #require(
      try JSONSerialization.jsonObject(with: JSONEncoder().encode(value)) as? [String: Any])
    try Golden.compare(
      Golden(Scratch()).text(of: object), with: file, sourceLocation: sourceLocation)
  }

  @Test func statusOfAClientIsNamedInFull() throws {
    #expect(
      try page.values("described client", "status")
        == Set(ClientDescription.Status.allCases.map(\.rawValue)))
  }

  /// The members of an open set are in the code alone.
  @Test(arguments: [
    ("wait", "reason", "DocumentSync/Values/SyncReport.swift", "Reason"),
    ("warning", "code", "SyncModel/SyncWarning.swift", "Code"),
    ("rebootstrap", "reason", "DocumentSync/Values/SyncReport+Rebootstrap.swift", "Reason"),
    ("conflict", "rule", "SyncModel/Conflict.swift", "Rule"),
  ])
  func openSetsAreNamedInFull(object: String, key: String, file: String, type: String) throws {
    let code = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Sources/" + file), encoding: .utf8)
    let pattern = try Regex<(Substring, Substring)>(
      "static let \\w+ = \(type)\\(rawValue: \"(\\w+)\"\\)")
    let made = Set(code.matches(of: pattern).map { String($0.output.1) })
    #expect(made.count > 3)
    #expect(try page.values(object, key) == made)
  }
}
