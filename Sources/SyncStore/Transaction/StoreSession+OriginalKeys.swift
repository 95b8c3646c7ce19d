extension StoreSession {
  /// Returns the keys that rows had when syncing began. Reads them once.
  func originalKeys() throws -> OriginalKeys {
    if let known = knownOriginalKeys { return known }
    let read = try OriginalKeys.read(database)
    knownOriginalKeys = read
    return read
  }
}
