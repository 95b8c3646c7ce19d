/// The JSON object of a command, together with the version of its schema.
struct SchemaJSON: Encodable {
  /// The version of the schema. It increases when a key changes its meaning or is removed.
  static let number = 1

  private let object: any Encodable

  /// Adds the version to an object.
  init(_ object: any Encodable) { self.object = object }

  private enum CodingKeys: String, CodingKey { case schema }

  func encode(to encoder: any Encoder) throws {
    try object.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Self.number, forKey: .schema)
  }
}
