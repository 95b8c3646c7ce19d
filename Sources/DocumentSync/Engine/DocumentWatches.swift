/// The tasks that hear of changes of a document.
struct DocumentWatches {
  /// Hears of changes of the store's files; `nil` if they are not watched.
  var store: Task<Void, Never>?
  /// Hears of changes of the directory.
  var directory: Task<Void, Never>?

  /// Whether both are watched.
  var areComplete: Bool { store != nil && directory != nil }

  mutating func cancel() {
    store?.cancel()
    store = nil
    cancelDirectory()
  }

  mutating func cancelDirectory() {
    directory?.cancel()
    directory = nil
  }
}
