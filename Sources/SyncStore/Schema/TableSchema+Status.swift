import SyncModel

extension TableSchema {
  /// Returns the description of the table for reports.
  func status(_ configuration: StoreConfiguration) -> StoreStatus.TableStatus {
    let chosen: StoreConfiguration.Identity =
      switch identity {
      case .primaryKey: .primaryKey
      case .surrogate: .surrogate
      case .columns(let positions): .columns(positions.map { columns[$0].name })
      }
    let excluded = configuration.excludedColumns.first {
      $0.key.folded == name.folded
    }
    return StoreStatus.TableStatus(
      name: name, identity: chosen, excludedColumns: (excluded?.value ?? []).sorted())
  }
}
