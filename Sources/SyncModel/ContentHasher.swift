import Crypto

/// The computation of the ``ContentHash`` of content that comes in parts.
package struct ContentHasher: Sendable {
  private var state = SHA256()

  /// Creates a hasher that has read nothing.
  package init() {}

  /// Adds the next part.
  package mutating func update(_ bytes: some Sequence<UInt8>) {
    let done: Void? = bytes.withContiguousStorageIfAvailable {
      state.update(bufferPointer: UnsafeRawBufferPointer($0))
    }
    if done == nil { state.update(data: Array(bytes)) }
  }

  /// The hash of all parts added so far. More may be added afterwards.
  package var hash: ContentHash {
    ContentHash(digest: Array(state.finalize()))
  }
}
