import SyncModel

extension Value {
  /// The bytes of a text, a blob or a reference.
  var contentCount: Int {
    switch self {
    case .null, .integer, .real: 0
    case .text(let bytes), .blob(let bytes): bytes.count
    case .identity(let row): row.bytes.count
    }
  }
}
