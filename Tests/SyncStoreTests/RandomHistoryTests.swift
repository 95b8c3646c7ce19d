import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Random edits by plain SQL on three devices, with random exchanges between,
/// over a schema with references, unique values and conditions.
@Suite struct RandomHistoryTests {
  private static let schema = """
    CREATE TABLE country (code TEXT PRIMARY KEY COLLATE NOCASE, name TEXT NOT NULL);
    CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT UNIQUE,
      country TEXT REFERENCES country ON UPDATE CASCADE ON DELETE SET NULL,
      boss INTEGER REFERENCES person ON DELETE SET NULL);
    CREATE TABLE project (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT,
      owner INTEGER NOT NULL REFERENCES person ON DELETE CASCADE, UNIQUE (owner, title));
    CREATE TABLE task (id INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES project ON DELETE
      CASCADE, parent INTEGER REFERENCES task ON DELETE CASCADE, title TEXT,
      low INTEGER DEFAULT 0, high INTEGER DEFAULT 9, CHECK (low <= high));
    CREATE TABLE tag (name TEXT PRIMARY KEY, colour) WITHOUT ROWID;
    CREATE TABLE task_tag (task INTEGER REFERENCES task ON DELETE CASCADE, tag TEXT REFERENCES tag
      ON UPDATE CASCADE ON DELETE CASCADE, weight REAL, PRIMARY KEY (task, tag));
    CREATE TABLE slot (day INTEGER, hour INTEGER, person INTEGER REFERENCES person,
      label TEXT, PRIMARY KEY (day, hour)) WITHOUT ROWID;
    CREATE UNIQUE INDEX slot_label ON slot (lower(label)) WHERE label IS NOT NULL;
    CREATE TABLE setting (key TEXT PRIMARY KEY, value) ;
    """

  /// One statement; it may well be refused.
  private func edit(_ random: inout SeededGenerator) -> String {
    let id = random.below(12) + 1
    let other = random.below(12) + 1
    let name = "n\(random.below(8))"
    let value = ["1", "1.0", "NULL", "'x'", "x'00ff'", "''", "9e999"][random.below(7)]
    let verb = ["INSERT", "INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"][random.below(4)]
    switch random.below(26) {
    case 0: return "\(verb) INTO country VALUES ('\(name)', 'c\(id)')"
    case 1: return "\(verb) INTO country VALUES (upper('\(name)'), 'C\(id)')"
    case 2: return "UPDATE country SET name = 'd\(other)' WHERE code = '\(name)'"
    case 3: return "UPDATE country SET code = 'n\(random.below(8))' WHERE code = '\(name)'"
    case 4: return "DELETE FROM country WHERE code = '\(name)'"
    case 5, 6:
      return "\(verb) INTO person (name, mail, country, boss) VALUES ('p\(id)', 'm\(other)', "
        + "\(random.chance(50) ? "'\(name)'" : "NULL"), \(random.chance(30) ? "\(other)" : "NULL"))"
    case 7: return "UPDATE OR REPLACE person SET mail = 'm\(other)' WHERE id = \(id)"
    case 8: return "UPDATE person SET boss = \(other), name = 'q\(other)' WHERE id = \(id)"
    case 9: return "DELETE FROM person WHERE id = \(id)"
    case 10, 11:
      return "\(verb) INTO project (title, owner) VALUES ('t\(random.below(3))', \(id))"
    case 12: return "UPDATE project SET owner = \(other) WHERE id = \(id)"
    case 13: return "DELETE FROM project WHERE id = \(id)"
    case 14, 15:
      return "\(verb) INTO task (project, parent, title) VALUES (\(id), "
        + "\(random.chance(40) ? "\(other)" : "NULL"), '\(name)')"
    case 16: return "UPDATE task SET low = \(random.below(12)) WHERE id = \(id)"
    case 17: return "UPDATE task SET high = \(random.below(12)), title = '\(name)' WHERE id = \(id)"
    case 18: return "DELETE FROM task WHERE id = \(id)"
    case 19: return "\(verb) INTO tag VALUES ('\(name)', \(value))"
    case 20: return "UPDATE tag SET name = 'n\(random.below(8))' WHERE name = '\(name)'"
    case 21: return "\(verb) INTO task_tag VALUES (\(id), '\(name)', \(Double(other) / 4))"
    case 22: return "DELETE FROM tag WHERE name = '\(name)'"
    case 23:
      return "\(verb) INTO slot VALUES (\(random.below(3)), \(random.below(3)), \(id), "
        + "\(random.chance(50) ? "'L\(random.below(3))'" : "NULL"))"
    case 24:
      return "UPDATE OR REPLACE slot SET label = 'l\(random.below(3))', person = \(other) "
        + "WHERE day = \(random.below(3)) AND hour = \(random.below(3))"
    default: return "\(verb) INTO setting VALUES ('\(name)', \(value))"
    }
  }

  private func run(seed: UInt64, steps: Int) throws {
    var random = SeededGenerator(seed: seed)
    let scratch = try Scratch()
    let devices = try scratch.devices(3, Self.schema)
    let programs = try devices.map {
      (on: try Program($0.path), off: try Program($0.path, foreignKeys: false))
    }
    // Edits that were accepted, by verb.
    var accepted: [String: Int] = [:]
    for _ in 0..<steps {
      let device = random.below(3)
      if random.chance(85) {
        let program = random.chance(80) ? programs[device].on : programs[device].off
        let statement = edit(&random)
        do {
          try program.run(statement)
          accepted[String(statement.prefix { $0 != " " }), default: 0] += 1
          if ProcessInfo.processInfo.environment["DOCSYNC_TRACE"] != nil {
            print("\(device + 1): \(statement)")
            if let q = ProcessInfo.processInfo.environment["DOCSYNC_QUERY"] {
              print("   ", try devices[device].rows(q))
            }
          }
        } catch is Program.Failure {
          // Refused by the schema, as many of these are.
          continue
        }
      } else {
        let from = (device + 1 + random.below(2)) % 3
        try devices[device].receive(from: devices[from])
        _ = try devices[device].store.seal()
        let broken = try devices[device].rows("PRAGMA foreign_key_check")
        if ProcessInfo.processInfo.environment["DOCSYNC_TRACE"] != nil {
          print("-- device \(device + 1) from \(from + 1)", broken)
          if let q = ProcessInfo.processInfo.environment["DOCSYNC_QUERY"] {
            print("   ", try devices[device].rows(q))
          }
        }
        #expect(broken == [], "seed \(seed)")
      }
    }
    #expect(accepted.values.reduce(0, +) > steps * 45 / 100, "seed \(seed), \(accepted)")
    for verb in ["INSERT", "UPDATE", "DELETE"] {
      #expect(accepted[verb, default: 0] > 10, "seed \(seed), \(accepted)")
    }
    for _ in 0..<3 {
      for device in 0..<3 {
        try devices[device].receive(from: devices[(device + 1) % 3], devices[(device + 2) % 3])
        if let q = ProcessInfo.processInfo.environment["DOCSYNC_QUERY"] {
          print("final \(device + 1)", try devices[device].rows(q))
        }
      }
    }
    let digests = try devices.map { try $0.store.digest() }
    if Set(digests.map(\.visible)).count > 1 { try describe(devices) }
    if Set(digests.map(\.logical)).count > 1 { try describeStates(devices) }
    for device in devices.indices {
      #expect(digests[device].visible == digests[0].visible, "visible, seed \(seed)")
      #expect(digests[device].logical == digests[0].logical, "logical, seed \(seed)")
      #expect(try devices[device].rows("PRAGMA integrity_check") == ["ok"], "seed \(seed)")
      #expect(try devices[device].rows("PRAGMA foreign_key_check") == [], "seed \(seed)")
      #expect(try devices[device].store.waiting() == [], "seed \(seed)")
    }
    #expect(
      try devices.map { try $0.rows("SELECT * FROM setting ORDER BY key") }.allSatisfy {
        try $0 == devices[0].rows("SELECT * FROM setting ORDER BY key")
      }, "settings, seed \(seed)")
  }

  /// Prints where the devices differ.
  private func describe(_ devices: [Device]) throws {
    let tables = try devices[0].rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'docsync_%'")
    for table in tables where table != "sqlite_sequence" {
      let contents = try devices.map { try $0.rows("SELECT * FROM \(table) ORDER BY 1, 2") }
      guard Set(contents).count > 1 else { continue }
      print(table)
      for (number, rows) in contents.enumerated() {
        let others = contents.enumerated().filter { $0.offset != number }.flatMap(\.element)
        print("  device \(number + 1):", rows.filter { !others.contains($0) })
      }
    }
    for device in devices {
      print(
        try device.rows(
          "SELECT name, hex(identity), reason, hex(moved), hex(cells) FROM docsync_kept, docsync_table ON tbl = id"
        ))
      print(
        try device.rows(
          "SELECT 'ref', parent, columns, hex(key), tbl, hex(identity) FROM docsync_kept_reference")
      )
      print(try device.rows("SELECT 'country', * FROM country"))
    }
  }

  /// Prints the states that differ.
  private func describeStates(_ devices: [Device]) throws {
    for table in try devices[0].store.read({ $0.schema.tables }) {
      let states = try devices.map { device in
        try device.store.read { session in
          var found: [RowFingerprint: String] = [:]
          try session.access(table.id).stamps.forEach { fingerprint, state in
            func text(_ stamp: LocalStamp) -> String {
              "\(stamp.time & 0xFFFFFFFFF)/\(session.clients.client(stamp.client).description.prefix(3))"
            }
            found[fingerprint] =
              "\(state.existence) \(text(state.existenceStamp)) \(text(state.cellStamp)) "
              + state.exceptions.map { "\($0.column):\(text($0.stamp))" }.joined(separator: " ")
          }
          return found
        }
      }
      for fingerprint in Set(states.flatMap(\.keys))
      where Set(states.map { $0[fingerprint] ?? "-" }).count > 1 {
        print(table.name, fingerprint, states.map { $0[fingerprint] ?? "-" })
      }
    }
    for device in devices {
      print(
        try device.rows(
          "SELECT name, hex(docsync_kept.identity), reason, hex(cells) FROM docsync_kept, docsync_table ON tbl = id"
        ))
    }
  }

  private static let seeds: [UInt64] = {
    let environment = ProcessInfo.processInfo.environment
    let count = environment["DOCSYNC_RUNS"].flatMap(UInt64.init) ?? 20
    // The first ones always, and those from another one on if it is named.
    let others = environment["DOCSYNC_SEED"].flatMap(UInt64.init).map { $0..<($0 + count) }
    return Array(1...20) + (others ?? 21..<max(21, 1 + count)).filter { $0 > 20 }
  }()

  @Test(arguments: seeds)
  func devicesConvergeWhateverIsEdited(seed: UInt64) throws { try run(seed: seed, steps: 200) }
}
