import DocumentSync
import DocumentSyncTesting
import GRDB
import SyncModel
import SyncStore
import Testing

/// Random edits of tables of all kinds.
extension RowChangesTests {
  /// Replays what was told over the rows from before; the result must be the rows from after.
  private func expect(
    _ changes: [RowChanges], lead before: [String: [[Value]: String]],
    to after: [String: [[Value]: String]], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for table in changes.flatMap(\.tables) where !table.isComplete {
      #expect(
        table.inserted + table.updated + table.deleted == [], sourceLocation: sourceLocation)
    }
    for (name, rows) in before {
      var keys = Set(rows.keys)
      var touched: Set<[Value]> = []
      if changes.flatMap(\.tables).contains(where: { $0.name.text == name && !$0.isComplete }) {
        #expect(
          Pair.loose.union(Pair.redirected).contains(name), sourceLocation: sourceLocation)
        continue
      }
      for table in changes.flatMap(\.tables) where table.name.text == name {
        #expect(table.keyColumns.map(\.text) == Pair.keys[name], sourceLocation: sourceLocation)
        #expect(!Pair.loose.contains(name), sourceLocation: sourceLocation)
        for key in table.deleted {
          #expect(keys.remove(key) != nil, "\(name) \(key)", sourceLocation: sourceLocation)
        }
        for key in table.inserted {
          #expect(keys.insert(key).inserted, "\(name) \(key)", sourceLocation: sourceLocation)
        }
        for key in table.updated {
          #expect(keys.contains(key), "\(name) \(key)", sourceLocation: sourceLocation)
        }
        touched.formUnion(table.inserted + table.updated)
      }
      #expect(
        keys == Set(after[name, default: [:]].keys), "\(name)", sourceLocation: sourceLocation)
      for (key, row) in after[name, default: [:]] where rows[key] != row {
        #expect(touched.contains(key), "\(name) \(key)", sourceLocation: sourceLocation)
      }
    }
  }

  /// Returns a statement that edits some of few rows, so that devices meet.
  static func randomEdit(_ random: inout SeededRandom) -> (String, StatementArguments) {
    let number = Int.random(in: 1...6, using: &random)
    let text = ["a", "b", "c", "d"].randomElement(using: &random) ?? "a"
    switch Int.random(in: 0..<24, using: &random) {
    case 0: return ("INSERT OR IGNORE INTO tag(name) VALUES(?)", [text])
    case 1: return ("UPDATE OR IGNORE tag SET name = ? WHERE id = ?", [text, number])
    case 2: return ("DELETE FROM tag WHERE id = ?", [number])
    case 3: return ("UPDATE OR REPLACE tag SET name = ? WHERE id = ?", [text, number])
    case 4:
      return ("INSERT INTO note(title, tag) SELECT ?, (SELECT max(id) FROM tag)", [text])
    case 5: return ("UPDATE note SET title = title || ? WHERE id = ?", [text, number])
    case 6: return ("DELETE FROM note WHERE id = ?", [number])
    case 7: return ("INSERT OR REPLACE INTO page VALUES(?, ?)", [text, number])
    case 8: return ("DELETE FROM page WHERE key = ?", [text])
    case 9: return ("INSERT OR REPLACE INTO plain VALUES(?, ?, ?)", [text, number, text])
    case 10: return ("UPDATE OR IGNORE plain SET number = ? WHERE key = ?", [number, text])
    case 11: return ("DELETE FROM plain WHERE number = ?", [number])
    case 12:
      return (
        "INSERT OR REPLACE INTO name VALUES(?, ?)",
        [Bool.random(using: &random) ? text : text.uppercased(), number]
      )
    case 13: return ("DELETE FROM name WHERE name = ?", [text])
    case 14:
      return (
        "INSERT OR REPLACE INTO loose VALUES(?, 1, ?)",
        [Bool.random(using: &random) ? number.databaseValue : text.databaseValue, text]
      )
    case 15: return ("INSERT OR IGNORE INTO city VALUES(?, 'x', ?, '')", [number, text])
    case 16: return ("UPDATE OR IGNORE city SET id = ? WHERE name = ?", [number, text])
    case 17: return ("UPDATE city SET body = body || ? WHERE name = ?", [text, text])
    case 18: return ("DELETE FROM city WHERE name = ?", [text])
    case 19:
      return ("INSERT INTO visit(city, body) SELECT id, '' FROM city WHERE name = ?", [text])
    case 21:
      return ("INSERT OR REPLACE INTO amount VALUES(?, ?)", [Double(number) / 2, text])
    case 22: return ("DELETE FROM amount WHERE amount = ?", [number])
    case 20:
      return (
        "INSERT OR IGNORE INTO stay SELECT id, ?, '' FROM city WHERE name = ?", [number, text]
      )
    default:
      return (
        "INSERT OR IGNORE INTO link SELECT (SELECT max(id) FROM note), key FROM page LIMIT 1", []
      )
    }
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func whatIsToldIsWhatHasChanged(seed: UInt64) async throws {
    let pair = try await Pair()
    var random = SeededRandom(seed: seed)
    var toldCount = 0
    for _ in 0..<25 {
      for device in 0...1 {
        for _ in 0..<Int.random(in: 0...8, using: &random) {
          let (sql, arguments) = Self.randomEdit(&random)
          let isFree = sql.hasPrefix("UPDATE OR IGNORE city") && Bool.random(using: &random)
          try pair.edit(device, sql, arguments, hasForeignKeys: !isFree)
        }
      }
      try await pair.managers[0].synchronize()
      let before = try pair.rows(1)
      let changes = try await pair.changes { try await pair.managers[1].synchronize() }
      toldCount += changes.flatMap(\.tables).count
      expect(changes, lead: before, to: try pair.rows(1))
    }
    #expect(toldCount > 10)
  }
}
