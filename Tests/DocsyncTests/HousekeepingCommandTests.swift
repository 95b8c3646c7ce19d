import Foundation
import Testing

/// Vacuum, retirement and reset.
@Suite struct HousekeepingCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
  }

  private func client(_ name: String) throws -> String {
    let clients = try #require(
      try scratch.succeed("clients", "a.db", "--json").json()["clients"] as? [[String: Any]])
    return try #require(
      clients.first { $0["clientName"] as? String == name }?["client"] as? String)
  }

  private func status(_ name: String) throws -> [String?] {
    try [["a.db"], ["--directory", "shared"]].map { place in
      let result = try Executable.run(["clients"] + place + ["--json"], in: scratch.path).json()
      let clients = try #require(result["clients"] as? [[String: Any]])
      return clients.first { $0["clientName"] as? String == name }?["status"] as? String
    }
  }

  private func publish(_ store: String, _ count: Int) throws {
    for number in 1...count {
      try scratch.sql(store, "INSERT INTO notes (title) VALUES ('\(store) \(number)')")
      try scratch.succeed("sync", store)
    }
  }

  private func changeSets(_ client: String) throws -> Int {
    try scratch.contents().keys.filter {
      $0.contains("SyncChanges/\(client)/") && $0.hasSuffix(".syncchg")
    }.count
  }

  // MARK: vacuum

  @Test func vacuumSaysWhatIsKeptForWhomAndWhatWent() throws {
    let (a, b) = (try client("A"), try client("B"))
    #expect(try scratch.succeed("vacuum", "a.db").output.hasPrefix("nothing to remove\n"))
    try publish("a.db", 3)
    let kept = try scratch.succeed("vacuum", "a.db").output
    #expect(
      kept.contains("kept 3 change sets (1–3) of A (\(a.prefix(6))) for B (\(b.prefix(6))): "))
    #expect(try changeSets(a) == 3)
    try scratch.succeed("sync", "b.db")
    try scratch.succeed("upload", "b.db")
    var text = ""
    for store in ["a.db", "b.db", "a.db"] { text += try scratch.succeed("vacuum", store).output }
    #expect(text.contains("removed 3 change sets (1–3) of A (\(a.prefix(6))): "), "\(text)")
    #expect(try changeSets(a) == 0)
  }

  @Test func vacuumTellsProgramsTheSame() throws {
    let (a, b) = (try client("A"), try client("B"))
    try publish("a.db", 2)
    let result = try scratch.succeed("vacuum", "a.db", "--json").json()
    #expect(result["store"] as? String == "a.db")
    #expect(Set(result.keys) == ["schema", "store", "vacuum"])
    let report = try #require(result["vacuum"] as? [String: Any])
    #expect(report["madeSegments"] as? Int == 0 && report["verifiedSegments"] as? Int == 0)
    #expect(report["uploadedWholeStore"] as? Bool == false)
    #expect((report["removed"] as? [Any])?.isEmpty == true)
    let kept = try #require(report["kept"] as? [[String: Any]])
    let sets = try #require(kept.first { $0["kind"] as? String == "changeSets" })
    #expect(sets["client"] as? String == a && sets["member"] as? String == b)
    #expect(sets["first"] as? Int == 1 && sets["last"] as? Int == 2 && sets["count"] as? Int == 2)
  }

  @Test func vacuumWithoutTheDirectoryIsAway() throws {
    let shared = scratch.path + "/shared"
    try FileManager.default.moveItem(atPath: shared, toPath: scratch.path + "/gone")
    for verb in [["vacuum", "a.db"], ["retire", "a.db", "--not-seen", "1"], ["reset", "a.db"]] {
      try scratch.expectFailure(verb, status: 4, code: "directoryAway", path: shared)
    }
  }

  // MARK: retire

  @Test(arguments: [false, true])
  func retiredDeviceIsListedAsSuchAndNotWaitedFor(isJSON: Bool) throws {
    let b = try client("B")
    try publish("a.db", 1)
    if isJSON {
      let result = try scratch.succeed("retire", "a.db", "--client", b, "--json").json()
      #expect(result["retired"] as? [String] == [b])
      #expect(result["store"] as? String == "a.db")
      #expect(Set(result.keys) == ["retired", "schema", "store"])
    } else {
      let text = try scratch.succeed("retire", "a.db", "--client", String(b.prefix(8))).output
      #expect(text == "Retired B (\(b.prefix(6))).\n")
    }
    #expect(try status("B") == ["retired", "retired"])
    try scratch.succeed("upload", "a.db")
    // What the first whole store lacks goes after it has gone.
    for _ in 0..<2 { try scratch.succeed("vacuum", "a.db") }
    #expect(try changeSets(try client("A")) == 0)
    // Nothing of it is left by now.
    #expect(try scratch.contents().keys.allSatisfy { !$0.contains("RecentSyncs/\(b)") })
    #expect(try status("B") == ["retired", "retired"])
    #expect(try scratch.succeed("clients", "--directory", "shared").output.contains("  retired  "))
    // It returns, with what was edited there, and says so.
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('of b')")
    #expect(try scratch.succeed("sync", "b.db").output.contains("goes on as a new device"))
    try scratch.succeed("sync", "a.db")
    #expect(try scratch.column("a.db", "SELECT title FROM notes").contains("\"of b\""))
  }

  @Test func noDeviceIsRetiredThatWasNotMissedForLong() throws {
    #expect(
      try scratch.succeed("retire", "a.db", "--not-seen", "30").output == "No device to retire.\n")
    let result = try scratch.succeed("retire", "a.db", "--not-seen", "1", "--json").json()
    #expect((result["retired"] as? [Any])?.isEmpty == true)
    #expect(try status("B") == ["member", "member"])
  }

  @Test func retiringWhoIsNotThereOrIsTheOwnDeviceFails() throws {
    for other in ["zzzz", ""] {
      try scratch.expectFailure(
        "retire", "a.db", "--client", other, status: 1, code: "noSuchClient", path: "a.db")
    }
    // It synchronizes before it finds out.
    let own = try scratch.docsync("retire", "a.db", "--client", try client("A"))
    #expect(own.status == 1 && own.errors.contains("This device cannot retire itself."))
    #expect(try status("A") == ["member", "member"])
    for wrong in [[], ["--client", "x", "--not-seen", "3"], ["--not-seen", "0"]] {
      try scratch.expectFailure(["retire", "a.db"] + wrong, status: 2, code: "usage", path: nil)
    }
  }

  // MARK: reset

  @Test func resetWantsYesWithoutATerminalAndNamesWhoHasToDownload() throws {
    try scratch.sql("a.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    let shared = scratch.path + "/shared"
    try scratch.expectFailure(
      "reset", "a.db", status: 5, code: "confirmationNeeded", path: shared)
    let text = try scratch.docsync("reset", "a.db").errors
    #expect(text.contains("1 device will have to download it again"))
    #expect(text.contains("B (\(try client("B").prefix(6))), synced last 20"))
    #expect(text.contains("edits of this device that are not sent yet will be sent first"))
    #expect(text.contains("its history will be deleted") && text.contains("files, "))
    // A device that has left has nothing to download.
    try scratch.succeed("leave", "b.db", "--yes")
    let alone = try scratch.docsync("reset", "a.db").errors
    #expect(alone.contains("no other device shares it"))
    #expect(alone.contains("its history will be deleted: "))
  }

  @Test func resetDocumentIsTakenOverWithWhatTheOthersHaveEdited() throws {
    let b = try client("B")
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('of b')")
    let result = try scratch.succeed("reset", "a.db", "--yes", "--json").json()
    #expect(
      Set(result.keys) == ["schema", "store", "document", "generation", "ordinal", "clients"])
    #expect(result["ordinal"] as? Int == 2 && result["clients"] as? [String] == [b])
    let text = try scratch.succeed("sync", "b.db").output
    #expect(text.contains("took over the document's database") && text.contains("was reset"))
    try scratch.succeed("sync", "a.db")
    #expect(try scratch.column("a.db", "SELECT title FROM notes").contains("\"of b\""))
    // Who it was before is no member of the new generation.
    let again = try scratch.succeed("reset", "b.db", "--yes").output
    #expect(again.contains("as generation 3") && again.contains("1 device takes over its database"))
  }
}
