import DocumentSync
import GRDB

/// The records that the document has, and does not show since another one has a unique value, or since one to
/// which they refer is missing.
struct ParkedRecords {
  /// The version of the store in which they are parked.
  private(set) var version: Int64?
  private(set) var ids: Set<ModelRecord.ID> = []

  init() {}

  /// - Parameter version: The version of the store before the rows were read.
  init(version: Int64?, _ rows: [ParkedRow], _ schema: ModelSchema) {
    self.version = version
    ids = Set(
      rows.compactMap { row in
        guard [.uniqueValueTaken, .parentMissing].contains(row.reason),
          let type = schema.types.first(where: { SQLName($0.name) == row.table }),
          case .text(let bytes)? = IdentityEncoding.values(of: row.identity, count: 1)?.first
        else { return nil }
        return ModelRecord.ID(type: type.name, identity: String(decoding: bytes, as: UTF8.self))
      })
  }

  /// Returns a number that changes whenever another connection has written to the store.
  static func version(_ database: Database) throws -> Int64? {
    try Int64.fetchOne(database, sql: "PRAGMA data_version")
  }
}
