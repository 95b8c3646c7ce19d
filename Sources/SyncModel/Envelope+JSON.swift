import Foundation

extension Envelope {
  /// Encodes a file whose body is `value` as JSON, with sorted keys, so that equal values give
  /// equal bytes.
  package static func encodeJSON(
    _ value: some Encodable, type: FileType, limits: CodecLimits = .small
  ) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try Envelope(type: type, body: Array(encoder.encode(value))).encoded(limits: limits)
  }

  /// Decodes the value in a file of ``encodeJSON(_:type:limits:)``.
  ///
  /// Keys that `Value` does not know are ignored. Throws ``CodecError``.
  package static func decodeJSON<Value: Decodable>(
    _ value: Value.Type, from bytes: [UInt8], type: FileType, limits: CodecLimits = .small
  ) throws -> Value {
    let envelope = try decode(bytes, expecting: type, limits: limits)
    do {
      return try JSONDecoder().decode(value, from: Data(envelope.body))
    } catch {
      throw CodecError(.malformed, "JSON body: \(error)")
    }
  }
}
