/// The object of a command with the number of the schema that describes it.
struct SchemaJSON: Encodable {
  /// The number of the schema: it grows when a key changes its meaning or goes.
  static let number = 1

  private let object: any Encodable

  /// Adds the number to an object.
  init(_ object: any Encodable) { self.object = object }

  private enum CodingKeys: String, CodingKey { case schema }

  func encode(to encoder: any Encoder) throws {
    try object.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Self.number, forKey: .schema)
  }
}
