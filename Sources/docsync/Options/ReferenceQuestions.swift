import SyncModel
import SyncStore

/// Questions before a database is put under sync: which columns that look like undeclared
/// references are references?
struct ReferenceQuestions {
  let store: String
  let references: [StorePlan.LikelyReference]

  /// Returns the columns that are references; the others contain plain numbers.
  ///
  /// Throws ``Failure`` if there is no terminal or the user does not answer a question. It changes
  /// nothing.
  func ask(_ console: Console) async throws -> [StorePlan.LikelyReference] {
    guard !references.isEmpty else { return [] }
    guard ConfirmationOptions.canAsk(console) else { throw refusal }
    console.note([
      "\(counted(references.count, "column")) of \(store) may refer to rows of other tables. "
        + "Integer keys differ between",
      "devices: a reference that is not declared leads to wrong rows on other devices.",
    ])
    var declared: [StorePlan.LikelyReference] = []
    for reference in references {
      if try await isReference(reference, console) { declared.append(reference) }
    }
    return declared
  }

  private func isReference(_ reference: StorePlan.LikelyReference, _ console: Console) async throws
    -> Bool
  {
    while true {
      console.ask([
        "\(reference.table).\(reference.column): \(reference.evidence).",
        "Does it refer to \(reference.parent)? Type “yes” or “no” to go on: ",
      ])
      switch try await ConfirmationOptions.line() {
      case "yes", "y": return true
      case "no", "n": return false
      case nil: throw refusal
      default: continue
      }
    }
  }

  private var refusal: Failure {
    let lines = references.map { "\($0.table).\($0.column): \($0.evidence)" }
    let options = references.map {
      "--reference " + shellWord("\($0.optionName)=\(QualifiedName(table: $0.parent).option)")
    }
    return Failure(
      code: "referencesUndeclared",
      messageLines: ["These columns look like references to rows, and are not declared:"] + lines,
      path: store,
      remedy: "Declare each of them: \(options.joined(separator: " ")); or, if it holds plain "
        + "numbers, --no-reference TABLE.COLUMN instead. Nothing was changed.",
      status: .refused)
  }
}

extension StorePlan.LikelyReference {
  /// The reason why the column looks like a reference.
  var evidence: String {
    valueCount == 0
      ? "named like a reference to \(parent)"
      : "\(matchCount) of \(counted(valueCount, "value")) are keys of \(parent)"
  }

  /// `TABLE.COLUMN`, as options take it.
  fileprivate var optionName: String { QualifiedName(table: table, column: column).option }
}
