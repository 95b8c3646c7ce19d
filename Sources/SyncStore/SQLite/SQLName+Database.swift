import GRDB
import SyncModel

extension SQLName: DatabaseValueConvertible {
  /// The name as text.
  public var databaseValue: DatabaseValue { text.databaseValue }

  /// Returns the name that a text spells.
  public static func fromDatabaseValue(_ value: DatabaseValue) -> SQLName? {
    String.fromDatabaseValue(value).map { SQLName($0) }
  }
}
