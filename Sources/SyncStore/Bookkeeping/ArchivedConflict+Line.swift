import Foundation

extension ArchivedConflict {
  /// The entry as `JSONDecoder` reads it.
  var line: [UInt8] {
    var line = JSONLine()
    line.object {
      $0.member("number", number)
      $0.member("at", at)
      $0.member("status", status)
      $0.member("kind", kind)
      $0.member("table", table.text)
      $0.member("identity", identity)
      $0.member("key", key, Cell.write)
      $0.member("column", column?.text)
      $0.member("base", base) { $1.write(to: &$0) }
      $0.member("local", local) { $1.write(to: &$0) }
      $0.member("remote", remote) { $1.write(to: &$0) }
      $0.member("rule", rule)
      $0.member("outcome", outcome)
      $0.member("message", message)
    }
    return line.bytes
  }
}

extension ArchivedConflict.Content {
  fileprivate func write(to line: inout JSONLine) {
    line.object {
      $0.member("integer", integer)
      $0.member("real", real)
      $0.member("text", text)
      $0.member("bytes", bytes)
      $0.member("blob", blob)
      $0.member("row", row)
    }
  }
}

extension ArchivedConflict.Cell {
  fileprivate static func write(_ line: inout JSONLine, _ cells: [Self]) {
    line.array(cells) { line, cell in
      line.object {
        $0.member("column", cell.column?.text)
        $0.member("value", cell.value) { $1.write(to: &$0) }
      }
    }
  }
}

extension ArchivedConflict.Side {
  fileprivate func write(to line: inout JSONLine) {
    line.object {
      $0.member("time", time)
      $0.member("client", client)
      $0.member("cells", cells, ArchivedConflict.Cell.write)
    }
  }
}
