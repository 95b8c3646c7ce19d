import SyncModel
import SyncStore

extension CommandState: StoredValue {
  func checkNumbers() throws {
    for retirement in retirements {
      try StoredNumbers.check("lastRevision", retirement.lastRevision)
      try StoredNumbers.check("number", retirement.number)
      try StoredNumbers.check("changeHead", retirement.changeHead)
    }
    try reset?.checkNumbers()
    for upload in wanted ?? [] { try StoredNumbers.check("number", upload.number) }
  }
}
