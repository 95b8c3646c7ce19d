extension StoreSession {
  /// The numbers from the beginning, read once.
  func originalKeys() throws -> OriginalKeys {
    if let known = knownOriginalKeys { return known }
    let read = try OriginalKeys.read(database)
    knownOriginalKeys = read
    return read
  }
}
