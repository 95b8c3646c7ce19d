import SyncModel

/// A table, or a column of it, as the command line names it:
/// `TABLE` or `TABLE.COLUMN`.
///
/// A name that contains a dot, a comma or an equals sign is put in double
/// quotes, as in SQL; a double quote within is doubled.
struct QualifiedName: Hashable, Sendable {
  var table: SQLName
  var column: SQLName?

  /// Parses the whole of `text`; `nil` if it is not of that form.
  init?(_ text: String) {
    var rest = Substring(text)
    guard let table = rest.takeName() else { return nil }
    self.table = table
    guard !rest.isEmpty else { return }
    guard rest.take("."), let column = rest.takeName(), rest.isEmpty else { return nil }
    self.column = column
  }
}

extension Substring {
  /// Takes a name, quoted or up to the next separator; `nil` if there is
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

  /// Takes a sign if it comes next.
  mutating func take(_ sign: Unicode.Scalar) -> Bool {
    guard unicodeScalars.first == sign else { return false }
    unicodeScalars.removeFirst()
    return true
  }
}
