import Foundation
import SyncModel

extension Value {
  /// The integer key with which SQLite compares a reference: `'03'`, `' 3'` and `3.0` refer to row 3
  /// (<https://www.sqlite.org/foreignkeys.html>, section 3).
  var referredNumber: Int64? {
    switch self {
    case .integer(let number): return number
    case .real(let real): return Int64(exactly: real)
    case .text(let bytes):
      let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: [" "])
      return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    case .null, .blob, .identity: return nil
    }
  }
}
