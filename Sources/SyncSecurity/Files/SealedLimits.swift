/// The caps that an opener checks before it takes memory.
package struct SealedLimits: Hashable, Sendable {
  /// The bytes of the public header, and of the extension fields.
  package var publicBytes = 64 << 10
  /// The bytes of the private header.
  package var privateBytes = 8 << 20
  /// The length of the stream in the file.
  package var streamBytes: Int

  /// The caps of all files but whole stores: 64 MiB and what padding adds.
  package static let `default` = SealedLimits(streamBytes: 80 << 20)
  /// The caps of whole stores, which no device has in memory.
  package static let wholeStore = SealedLimits(streamBytes: 1 << 44)

  /// Creates caps.
  package init(streamBytes: Int) { self.streamBytes = streamBytes }
}
