import Foundation
import Testing

@testable import SyncStore

/// The tables of bookkeeping as every version has made them.
@Suite struct BookkeepingTests {
  /// The text goes into the files of stores, and other devices compare shapes: it stays as it is,
  /// byte for byte, in this order.
  @Test func tablesAreMadeByTheStatementsOfEveryVersion() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Fixtures/Stores/bookkeeping.sql").standardized
    var text = ""
    var known = 0
    for version in 1...Bookkeeping.format {
      let statements = Bookkeeping.creation(upTo: version)
      text += (version > 1 ? "\n" : "") + "-- Version \(version)\n"
      for statement in statements.dropFirst(known) { text += statement + ";\n" }
      known = statements.count
    }
    #expect(try text == String(contentsOf: file, encoding: .utf8))
  }
}
