import SyncModel

/// Values by the names of tables or columns, as a JSON object.
struct NamedValues<Element: Encodable & Sendable>: Encodable, Sendable {
  /// The values in order of name.
  let values: [(key: SQLName, value: Element)]

  /// Creates the object. If a name occurs twice, its first value counts.
  init(_ values: some Sequence<(key: SQLName, value: Element)>) {
    self.init(pairs: values.map { ($0.key, $0.value) })
  }

  /// Creates the object. If a name occurs twice, its first value counts.
  init(_ values: [(SQLName, Element)]) { self.init(pairs: values) }

  private init(pairs: [(SQLName, Element)]) {
    values = Dictionary(pairs, uniquingKeysWith: { first, _ in first }).sorted { $0.key < $1.key }
  }

  /// Writes each value under its name. If a reader could confuse the name with another one, the
  /// name's bytes are the key (``SQLName/codingKey``).
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    var taken: Set<String> = []
    let isPlain = values.map { $0.key.codingKey.stringValue.utf8.elementsEqual($0.key.text.utf8) }
    for plain in [true, false] {
      for (entry, _) in zip(values, isPlain).filter({ $0.1 == plain }) {
        let text = taken.insert(entry.key.text).inserted ? entry.key.text : nil
        try container.encode(
          entry.value, forKey: Key(stringValue: text ?? entry.key.codingKey.stringValue))
      }
    }
  }

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
