import SyncModel

/// A table or a column as a command line names it: `TABLE` or `TABLE.COLUMN`.
///
/// The user puts a name with a dot, a comma or an equals sign in double quotes, as in SQL, and
/// doubles a double quote in it.
struct QualifiedName: Hashable, Sendable {
  var table: SQLName
  var column: SQLName?

  init(table: SQLName, column: SQLName? = nil) {
    self.table = table
    self.column = column
  }

  /// Parses `text`; `nil` if all of it does not have that form.
  init?(_ text: String) {
    var rest = Substring(text)
    guard let table = rest.takeName() else { return nil }
    self.table = table
    guard !rest.isEmpty else { return }
    guard rest.take("."), let column = rest.takeName(), rest.isEmpty else { return nil }
    self.column = column
  }

  /// The text that ``init(_:)`` parses.
  var option: String { Self.word(table) + (column.map { "." + Self.word($0) } ?? "") }

  private static func word(_ name: SQLName) -> String {
    name.text.unicodeScalars.contains { ".,=\"".unicodeScalars.contains($0) }
      ? name.quoted : name.text
  }
}

extension Substring {
  /// Removes and returns a name, quoted or up to the next separator; returns `nil` if there is
  /// none.
  mutating func takeName() -> SQLName? {
    // Unicode scalars, since a combining mark changes the character before it.
    guard take("\"") else {
      let name = Substring(unicodeScalars.prefix { !".,=\"".unicodeScalars.contains($0) })
      unicodeScalars.removeFirst(name.unicodeScalars.count)
      return name.isEmpty ? nil : SQLName(name)
    }
    var name = String.UnicodeScalarView()
    while let scalar = unicodeScalars.popFirst() {
      if scalar != "\"" {
        name.append(scalar)
      } else if take("\"") {
        name.append("\"")
      } else {
        return name.isEmpty ? nil : SQLName(String(name))
      }
    }
    return nil
  }

  /// Removes a sign if it comes next; returns whether it did.
  mutating func take(_ sign: Unicode.Scalar) -> Bool {
    guard unicodeScalars.first == sign else { return false }
    unicodeScalars.removeFirst()
    return true
  }
}
