import DocumentSyncTesting

/// Random statements as programs of a wholesaler would issue them; the schema
/// refuses some.
struct ShopEdits {
  private var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

  private mutating func code() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    let number = below(48)
    return "\(letters[number / 26])\(letters[number % 26])"
  }

  /// A row of a table, picked without looking at all of them.
  private mutating func pick(_ table: String, _ key: String = "rowid") -> String {
    "(SELECT \(key) FROM \(table) LIMIT 1 OFFSET \(below(40)))"
  }

  mutating func statement() -> String {
    let number = below(5_000) + 1
    switch below(30) {
    case 0, 1:
      return "INSERT INTO customer (name, email, city) VALUES ('New \(number)', "
        + "'n\(below(400))@example.org', \(below(420)))"
    case 2: return "UPDATE customer SET credit = credit + \(below(9) - 4) WHERE id = \(number)"
    case 3:
      return "UPDATE OR REPLACE customer SET email = upper('n\(below(400))@example.org') "
        + "WHERE id = \(number)"
    case 4: return "DELETE FROM customer WHERE id = \(number)"
    case 5: return "UPDATE city SET country = '\(code())' WHERE id = \(below(400))"
    case 6: return "INSERT OR REPLACE INTO country VALUES ('\(code())', 'Land', \(below(30)))"
    case 7: return "UPDATE country SET code = '\(code())' WHERE code = '\(code())'"
    case 8: return "DELETE FROM city WHERE id = \(below(400))"
    case 9: return "INSERT INTO category (name, parent) VALUES ('K\(below(9))', \(below(300)))"
    case 10: return "UPDATE category SET parent = \(below(300)) WHERE id = \(below(300))"
    case 11: return "DELETE FROM category WHERE id = \(below(300) + 250)"
    case 12:
      return "INSERT INTO product (sku, name, category, supplier) VALUES "
        + "('SKU-\(below(90) + 3_980)', 'P', \(below(300)), \(below(200)))"
    case 13: return "UPDATE product SET weight = \(below(99)).5, name = 'Q' WHERE id = \(number)"
    case 14: return "DELETE FROM supplier WHERE id = \(below(200)) AND id % 7 = 0"
    case 15: return "UPDATE stock SET amount = amount - 1 WHERE product % 997 = \(below(997))"
    case 16:
      return "INSERT INTO stock VALUES ('W\(below(12))', \(number), 5) "
        + "ON CONFLICT DO UPDATE SET amount = amount + 5"
    case 17: return "UPDATE warehouse SET code = 'W\(below(30))' WHERE code = 'W\(below(30))'"
    case 18: return "INSERT OR REPLACE INTO price VALUES (\(number), '2026-01-01', \(number))"
    case 19: return "DELETE FROM price WHERE product = \(number)"
    case 20, 21:
      return "INSERT INTO \"order\" (customer, placed) VALUES (\(number), '2026-02-02'); "
        + "INSERT INTO order_line VALUES (last_insert_rowid(), 1, \(below(4_000)), 2)"
    case 22: return "DELETE FROM \"order\" WHERE id = \(number)"
    case 23: return "UPDATE order_line SET amount = amount + 1 WHERE product = \(below(4_000))"
    case 24: return "UPDATE memo SET stars = \(below(6)) WHERE id = \(pick("memo", "id"))"
    case 25:
      return "UPDATE memo SET title = 'T\(number)', body = NULL WHERE id = \(pick("memo", "id"))"
    case 26: return "INSERT INTO memo VALUES (hex(randomblob(8)), 'fresh', 'b', \(below(6)))"
    case 27:
      return "INSERT OR REPLACE INTO tag VALUES ('\(below(2) == 0 ? "tag" : "TAG")\(below(60))', "
        + ["1", "1.0", "'red'", "NULL"][below(4)] + ")"
    case 28: return "UPDATE tag SET name = 'tag\(below(60))' WHERE name = 'tag\(below(60))'"
    default:
      return "INSERT OR IGNORE INTO memo_tag VALUES (\(pick("memo", "id")), 'tag\(below(60))')"
    }
  }
}
