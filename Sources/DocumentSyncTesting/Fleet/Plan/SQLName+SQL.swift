import CSQLite
import SyncModel

extension SQLName {
  /// The name as a program writes it in SQL: as it is where that is allowed, and otherwise in one of
  /// the three kinds of quotes.
  var sql: String {
    if isPlain { return text }
    var forms = [quoted]
    if !text.utf8.contains(UInt8(ascii: "]")) { forms.append("[\(text)]") }
    if !text.utf8.contains(UInt8(ascii: "`")) { forms.append("`\(text)`") }
    return forms[text.utf8.count % forms.count]
  }

  private var isPlain: Bool {
    // SQLite takes a byte order mark before a word for white space.
    guard let first = text.utf8.first, !(48...57).contains(first), first != 0xEF else {
      return false
    }
    let isWord = text.utf8.allSatisfy { byte in
      byte >= 128 || byte == UInt8(ascii: "_") || (48...57).contains(byte)
        || (65...90).contains(byte & 0xDF)
    }
    return isWord && sqlite3_keyword_check(text, Int32(text.utf8.count)) == 0
  }
}
