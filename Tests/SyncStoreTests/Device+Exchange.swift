import CSQLite
import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Exchanges everything between all devices until nothing is new.
func exchange(_ devices: [Device]) throws {
  for _ in 0..<3 {
    for device in devices {
      for other in devices where other !== device { try device.receive(from: other) }
    }
  }
}

/// Exchanges everything, and checks that the devices are equal and sound and,
/// where a query is given, that it finds `rows` on each.
func converge(
  _ devices: [Device], _ query: String? = nil, _ rows: [String] = [],
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  try exchange(devices)
  let first = try devices[0].store.digest()
  for device in devices {
    let digest = try device.store.digest()
    #expect(digest.visible == first.visible, "visible", sourceLocation: sourceLocation)
    #expect(digest.logical == first.logical, "logical", sourceLocation: sourceLocation)
    #expect(
      try device.rows("PRAGMA integrity_check") == ["ok"], sourceLocation: sourceLocation)
    #expect(try device.rows("PRAGMA foreign_key_check") == [], sourceLocation: sourceLocation)
    #expect(try device.store.waiting() == [], sourceLocation: sourceLocation)
    if let query {
      let found = try device.rows(query)
      #expect(found == rows, sourceLocation: sourceLocation)
    }
  }
}

extension Device {
  /// The changes of the change sets sealed after `number`, by table.
  func changes(after number: UInt64 = 0) throws -> [TableChanges] {
    try outgoing(after: number).flatMap(\.changeSet.tables)
  }

  /// Whether sealing finds nothing to say.
  func sealsNothing() throws -> Bool { try store.seal().changeSets.isEmpty }
}

extension TableChanges {
  /// Actions as letters, in order: i, u, d.
  var letters: String {
    String(
      actions.map { action -> Character in
        switch RowAction(rawValue: action) {
        case .insert: "i"
        case .update: "u"
        case .delete, .erase: "d"
        case nil: "?"
        }
      })
  }

  /// The columns that a row has, by name.
  func columnNames(_ row: Int) -> [SQLName] { shapes[Int(rowShapes[row])].map { columns[$0] } }
}
