import Crypto

/// Makes a ``ContentHash`` of content that comes in parts.
package struct ContentHasher: Sendable {
  private var state = SHA256()

  /// A hasher of nothing so far.
  package init() {}

  /// Adds the next part.
  package mutating func update(_ bytes: some Sequence<UInt8>) {
    let done: Void? = bytes.withContiguousStorageIfAvailable {
      state.update(bufferPointer: UnsafeRawBufferPointer($0))
    }
    if done == nil { state.update(data: Array(bytes)) }
  }

  /// The hash of what was added so far; more may be added afterwards.
  package var hash: ContentHash {
    ContentHash(digest: Array(state.finalize()))
  }
}
