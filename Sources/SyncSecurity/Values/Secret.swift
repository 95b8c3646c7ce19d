/// Bytes that no output may contain: descriptions, dumps and mirrors hide them.
package struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// What is secret.
  let bytes: [UInt8]

  /// Wraps bytes.
  init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

  /// The length of most secrets.
  static let byteCount = 32

  /// Draws 32 bytes.
  static func random(using generator: inout some RandomNumberGenerator) -> Secret {
    var bytes: [UInt8] = []
    while bytes.count < byteCount { bytes.append(little: generator.next() as UInt64) }
    return Secret(bytes)
  }

  /// A text without the bytes.
  package var description: String { "(a secret)" }
  /// A text without the bytes.
  package var debugDescription: String { description }
  /// A mirror without the bytes.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// Compares in a time that does not depend on where two secrets differ.
  package static func == (left: Secret, right: Secret) -> Bool {
    guard left.bytes.count == right.bytes.count else { return false }
    return zip(left.bytes, right.bytes).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
