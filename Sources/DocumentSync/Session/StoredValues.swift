import SyncModel
import SyncStore

// The checks of the numbers in the records of this module. Markers of other devices may contain any
// number. If a number comes from such a marker and is not checked here, code only compares it.

extension StoreRecords.OwnMarker: StoredValue {
  func checkNumbers() throws {
    try content.checkNumbers()
    try StoredNumbers.check("lowestKept", content.lowestKept, from: 1)
    try StoredNumbers.check("lowestKeptCommand", content.lowestKeptCommand, from: 1)
    try content.wholeStores.checkNumbers()
    try content.segments.checkNumbers()
    try content.waiting.checkNumbers()
    for retired in content.retired {
      try StoredNumbers.check("cut", retired.cut)
      try StoredNumbers.check("lowestKept", retired.lowestKept, from: 1)
      try StoredNumbers.check("lowestKeptCommand", retired.lowestKeptCommand, from: 1)
    }
  }
}

extension RecentSyncFile: StoredValue {
  func checkNumbers() throws { try StoredNumbers.check("revision", revision, from: 1) }
}

extension RecentSyncFile.WholeStore: StoredValue {
  func checkNumbers() throws { try StoredNumbers.check("number", number, from: 1) }
}

extension RecentSyncFile.Segment: StoredValue {
  func checkNumbers() throws {
    try StoredNumbers.check("first", first, from: 1)
    try StoredNumbers.check("last", last, from: first)
  }
}

extension StoreRecords.SeenMarker: StoredValue {
  func checkNumbers() throws {
    try StoredNumbers.check("revision", revision)
    try StoredNumbers.check("changeHead", changeHead)
    try StoredNumbers.check("commandHead", commandHead)
  }
}

extension StoreRecords.Kept: StoredValue {
  func checkNumbers() throws {
    try StoredNumbers.check("changeSets", changeSets, from: 1)
    try StoredNumbers.check("commands", commands, from: 1)
  }
}

extension StoreRecords.Vacuumed: StoredValue {
  func checkNumbers() throws {
    try StoredNumbers.check("head", head)
    try StoredNumbers.check("applied", applied)
  }
}

extension StoreRecords.Awaited: StoredValue {
  func checkNumbers() throws { try StoredNumbers.check("number", number) }
}

extension StoreRecords.Waits: StoredValue {
  func checkNumbers() throws {
    try last.checkNumbers()
    try said.checkNumbers()
  }
}

extension StoreRecords.Absence: StoredValue {
  func checkNumbers() throws {
    try StoredNumbers.check("revision", revision)
    try StoredNumbers.check("milliseconds", milliseconds: milliseconds)
    try StoredNumbers.check("count", count: count)
    try StoredNumbers.check("last", milliseconds: last)
  }
}

extension StoreRecords.FormerGeneration: StoredValue {
  /// ``lowestKept`` and ``cuts`` are only compared: they come from markers.
  func checkNumbers() throws {
    try contained.checkNumbers()
    for held in held ?? [] {
      try StoredNumbers.check("number", held.number)
      for deletions in held.deletions { try deletions.checkNumbers() }
    }
  }
}

extension StoreRecords.Ancestors: StoredValue {
  func checkNumbers() throws {
    try contained.checkNumbers()
    try takenBack?.checkNumbers()
  }
}

extension StoreRecords.FormerLife: StoredValue {
  func checkNumbers() throws { try clearing.checkNumbers() }
}

extension SyncReport.Wait: StoredValue {
  package func checkNumbers() throws { try StoredNumbers.check("number", number) }
}

extension SyncReport.Rebootstrap: StoredValue {
  package func checkNumbers() throws {
    try StoredNumbers.check("number", wholeStore.number, from: 1)
    for count in [
      wholeStore.byteCount, wholeStore.storeByteCount, reappliedChangeSets, returningChangeSets,
      conflicts,
    ] { try count.checkNumbers() }
    if let merged {
      for count in [
        merged.insertedRows, merged.equalRows, merged.differingRows, merged.differingCells,
        merged.refusedRows, merged.movedRows,
      ] { try count.checkNumbers() }
    }
    try warnings.checkNumbers()
  }
}

extension SyncCommand.Reset: StoredValue {
  func checkNumbers() throws { try StoredNumbers.check("ordinal", ordinal, from: 1) }
}

extension SyncCommand: StoredValue {
  func checkNumbers() throws {
    guard isWellFormed else {
      throw StoredNumbers.OutOfBounds("the command is not what its kind needs")
    }
  }
}
