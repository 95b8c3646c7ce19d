/// A table, or a column of it, as it is named on the command line:
/// `TABLE` or `TABLE.COLUMN`.
///
/// A name that holds a dot, a comma or an equals sign is put in double
/// quotes, as in SQL; a double quote within is doubled.
struct QualifiedName: Hashable, Sendable {
  var table: String
  var column: String?

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
  mutating func takeName() -> String? {
    guard take("\"") else {
      let name = prefix { !".,=\"".contains($0) }
      removeFirst(name.count)
      return name.isEmpty ? nil : String(name)
    }
    var name = ""
    while let character = popFirst() {
      if character != "\"" {
        name.append(character)
      } else if take("\"") {
        name.append("\"")
      } else {
        return name.isEmpty ? nil : name
      }
    }
    return nil
  }

  /// Takes a character if it comes next.
  mutating func take(_ character: Character) -> Bool {
    guard first == character else { return false }
    removeFirst()
    return true
  }
}
