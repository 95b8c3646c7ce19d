/// SipHash-2-4 with 128 bits of output.
///
/// Aumasson and Bernstein, “SipHash: a fast short-input PRF”, 2012, in the 128-bit variant of their
/// reference implementation. With a random key, 16 bytes can replace the key of a row: an attacker
/// who does not know the random key cannot make two of them collide.
package struct SipHash: Hashable, Sendable {
  private let first: UInt64
  private let second: UInt64

  /// Creates a hash from the key's two words, each read as little-endian bytes.
  package init(key: (UInt64, UInt64)) {
    first = key.0
    second = key.1
  }

  /// Creates a hash from a key of 16 bytes; `nil` for any other length.
  package init?(key: [UInt8]) {
    guard key.count == 16 else { return nil }
    self = key.withUnsafeBytes {
      SipHash(key: ($0.little(at: 0, as: UInt64.self), $0.little(at: 8, as: UInt64.self)))
    }
  }

  /// Returns the hash of an array.
  package func hash(_ bytes: [UInt8]) -> Bits128 { bytes.withUnsafeBytes { hash($0) } }

  /// Returns the hash of `bytes`. ``Bits128/bytes`` of the result are those that the reference
  /// implementation gives.
  package func hash(_ bytes: UnsafeRawBufferPointer) -> Bits128 {
    var state = State(first, second)
    let count = bytes.count
    var offset = 0
    while offset &+ 8 <= count {
      let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      state.v3 ^= word
      state.round()
      state.round()
      state.v0 ^= word
      offset &+= 8
    }
    var last = UInt64(truncatingIfNeeded: count) << 56
    var shift: UInt64 = 0
    while offset < count {
      last |= UInt64(bytes[offset]) &<< shift
      shift &+= 8
      offset &+= 1
    }
    state.v3 ^= last
    state.round()
    state.round()
    state.v0 ^= last

    state.v2 ^= 0xEE
    for _ in 0..<4 { state.round() }
    let high = state.folded
    state.v1 ^= 0xDD
    for _ in 0..<4 { state.round() }
    return Bits128(high: high.byteSwapped, low: state.folded.byteSwapped)
  }

  private struct State {
    var v0: UInt64
    var v1: UInt64
    var v2: UInt64
    var v3: UInt64

    @inline(__always)
    init(_ first: UInt64, _ second: UInt64) {
      v0 = first ^ 0x736F_6D65_7073_6575
      v1 = second ^ 0x646F_7261_6E64_6F6D ^ 0xEE
      v2 = first ^ 0x6C79_6765_6E65_7261
      v3 = second ^ 0x7465_6462_7974_6573
    }

    var folded: UInt64 { v0 ^ v1 ^ v2 ^ v3 }

    @inline(__always)
    mutating func round() {
      v0 = v0 &+ v1
      v1 = rotate(v1, 13) ^ v0
      v0 = rotate(v0, 32)
      v2 = v2 &+ v3
      v3 = rotate(v3, 16) ^ v2
      v0 = v0 &+ v3
      v3 = rotate(v3, 21) ^ v0
      v2 = v2 &+ v1
      v1 = rotate(v1, 17) ^ v2
      v2 = rotate(v2, 32)
    }

    @inline(__always)
    private func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
      word &<< bits | word &>> (64 &- bits)
    }
  }
}
