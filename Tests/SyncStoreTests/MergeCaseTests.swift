import Foundation
import Testing

@testable import SyncStore

/// The cases of `Fixtures/Merge`, which anyone can add to without writing
/// Swift.
@Suite struct MergeCaseTests {
  @Test(arguments: try MergeCaseReader.all())
  func aCaseEndsAsItSays(_ merged: MergeCase) throws {
    try MergeCaseRun.playAll(merged)
  }

  private func read(_ text: String) throws -> [MergeCase] {
    var reader = MergeCaseReader()
    return try reader.read(Data(text.utf8), file: "test.json")
  }

  private static let good = #"{"name": "n", "why": "w", "rows": {"t": [[1, null, "a"]]}}"#

  @Test func aCaseIsRead() throws {
    let cases = try read(
      #"{"about": "a", "schema": "CREATE TABLE t (a)", "cases": [\#(Self.good)]}"#)
    #expect(cases.count == 1)
    #expect(cases[0].schema == ["CREATE TABLE t (a)"])
    #expect(cases[0].expectation.rows == ["t": [[.integer(1), .null, .text("a")]]])
  }

  @Test(arguments: [
    ("an unknown key", #"{"name": "n", "why": "w", "rows": {"t": []}, "row": 1}"#, "unknown: row"),
    ("no expectation", #"{"name": "n", "why": "w"}"#, "says nothing"),
    ("a name that is there twice", "\(good), \(good)", "two cases"),
    ("no reason", #"{"name": "n", "rows": {"t": []}}"#, "“why” is missing"),
    (
      "an unknown key in a step",
      #"{"name": "n", "why": "w", "rows": {"t": []}, "steps": [{"on": "A", "sqll": ""}]}"#,
      "unknown: sqll"
    ),
    (
      "an unknown step",
      #"{"name": "n", "why": "w", "rows": {"t": []}, "steps": [{"send": "A"}]}"#, "“check”"
    ),
  ])
  func aFileIsRefusedFor(_ reason: String, _ cases: String, _ message: String) {
    let error = #expect(throws: MergeCaseError.self, "\(reason)") {
      try read(#"{"about": "a", "cases": [\#(cases)]}"#)
    }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }
}
