import Foundation
import SyncModel

/// Values that the store keeps as JSON.
package enum StoredJSON {
  /// The value in `bytes`, whose numbers are within bounds.
  package static func read<Value: StoredValue>(
    _ type: Value.Type = Value.self, from bytes: [UInt8]
  ) throws -> Value {
    let value = try JSONDecoder().decode(type, from: Data(bytes))
    try value.checkNumbers()
    return value
  }

  /// The value that a table holds under a key. If there is another one, throws
  /// ``StoreError/Code/damaged``, with the names of the table and of the key.
  package static func read<Value: StoredValue>(
    _ type: Value.Type = Value.self, from bytes: [UInt8], of table: String, key: String,
    path: String = ""
  ) throws -> Value {
    do {
      return try read(type, from: bytes)
    } catch {
      throw StoreError(damagedTable: table, path: path, "\(key): \(error)")
    }
  }
}
