import Crypto

/// Makes a ``ContentHash`` of content that comes in parts.
public struct ContentHasher: Sendable {
  private var state = SHA256()

  /// A hasher of nothing so far.
  public init() {}

  /// Adds the next part.
  public mutating func update(_ bytes: some Sequence<UInt8>) {
    let done: Void? = bytes.withContiguousStorageIfAvailable {
      state.update(bufferPointer: UnsafeRawBufferPointer($0))
    }
    if done == nil { state.update(data: Array(bytes)) }
  }

  /// The hash of what was added so far; more may be added afterwards.
  public var hash: ContentHash {
    ContentHash(digest: Array(state.finalize()))
  }
}
