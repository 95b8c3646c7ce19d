/// Advice about an error or a finding: a sentence that names actions by codes.
///
/// An application or a command shows the sentence with its own words for the actions
/// (``text(_:)``). ``description`` uses the titles of this library.
///
/// A remedy is written as a string literal: `"See what is wrong with \(.verify)."`
public struct Remedy: Hashable, Sendable {
  /// A part of the sentence.
  private enum Part: Hashable, Sendable {
    case text(String)
    /// An action, and whether it is to be done on another device.
    case action(Action, isElsewhere: Bool)
  }

  private var parts: [Part] = []

  /// Creates a sentence without actions.
  public init(_ text: String) { append(text) }

  /// Returns the sentence with the caller's words for the actions.
  ///
  /// - Parameter words: Returns the words for an action, such as a quoted title or a command.
  public func text(_ words: (Action) -> String) -> String { text(here: words, elsewhere: words) }

  /// Returns the sentence with the caller's words for the actions, which differ for those that are
  /// to be done on another device: it has other paths.
  package func text(here: (Action) -> String, elsewhere: (Action) -> String) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .action(let action, let isElsewhere): isElsewhere ? elsewhere(action) : here(action)
      }
    }.joined()
  }

  /// The actions that the sentence names, in order.
  public var actions: [Action] {
    parts.compactMap { part in
      if case .action(let action, _) = part { return action }
      return nil
    }
  }

  /// Whether the sentence is empty.
  public var isEmpty: Bool { parts.isEmpty }

  /// Returns whether ``description`` contains a text.
  public func contains(_ text: String) -> Bool { description.contains(text) }

  /// Returns whether ``description`` begins with a text.
  public func hasPrefix(_ text: String) -> Bool { description.hasPrefix(text) }

  /// The remedy with its first letter in upper case.
  package var capitalized: Remedy {
    guard case .text(let first)? = parts.first else { return self }
    var copy = self
    copy.parts[0] = .text(first.prefix(1).uppercased() + first.dropFirst())
    return copy
  }

  /// Joins two parts of a sentence.
  public static func + (left: Remedy, right: Remedy) -> Remedy {
    var sum = left
    sum.append(right)
    return sum
  }

  private mutating func append(_ text: String) {
    guard !text.isEmpty else { return }
    if case .text(let before)? = parts.last {
      parts[parts.count - 1] = .text(before + text)
    } else {
      parts.append(.text(text))
    }
  }

  private mutating func append(_ other: Remedy) {
    for part in other.parts {
      switch part {
      case .text(let text): append(text)
      case .action: parts.append(part)
      }
    }
  }
}

extension Remedy: CustomStringConvertible {
  /// The sentence with the titles of this library.
  public var description: String { text { "“\($0.title)”" } }
}

extension Remedy: ExpressibleByStringInterpolation {
  /// The text between and in the interpolations of a literal.
  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var remedy = Remedy("")

    /// Creates an empty sentence.
    public init(literalCapacity: Int, interpolationCount: Int) {}
    /// Adds text.
    public mutating func appendLiteral(_ literal: String) { remedy.append(literal) }
    /// Adds an action.
    public mutating func appendInterpolation(_ action: Action) {
      remedy.parts.append(.action(action, isElsewhere: false))
    }
    /// Adds an action that is to be done on another device.
    package mutating func appendInterpolation(elsewhere action: Action) {
      remedy.parts.append(.action(action, isElsewhere: true))
    }
    /// Adds another remedy.
    public mutating func appendInterpolation(_ other: Remedy) { remedy.append(other) }
    /// Adds a value as text.
    public mutating func appendInterpolation(_ value: some CustomStringConvertible) {
      remedy.append(value.description)
    }
  }

  /// Creates a sentence without actions.
  public init(stringLiteral value: String) { self.init(value) }
  /// Creates a sentence from the parts of a literal.
  public init(stringInterpolation: StringInterpolation) { self = stringInterpolation.remedy }
}
