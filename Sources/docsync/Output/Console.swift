import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The output of a command: results go to standard output and errors to standard error, or one JSON
/// object goes to standard output.
///
/// Names, paths and values come from other devices and programs. A terminal must show them as text,
/// whatever they contain; see ``printable(_:)``.
struct Console: Sendable {
  /// Whether only JSON may go to standard output: one object, or one on each line.
  var isJSON: Bool
  /// Whether each object is on one line: the command writes several.
  var hasLines = false

  /// Writes lines for people, unless the output is JSON.
  func say(_ lines: [String]) {
    guard !isJSON else { return }
    write(lines, to: .standardOutput)
  }

  /// Writes one JSON object on a line of its own, if the output is JSON.
  func line(_ value: any Encodable) {
    guard isJSON else { return }
    emit(value)
  }

  /// Shows the result of a command.
  func show(_ outcome: Outcome) {
    if isJSON {
      emit(outcome.json)
    } else if !outcome.lines.isEmpty {
      say(outcome.lines)
    }
  }

  /// Shows why a command failed; `lines` replace the usual form.
  func show(_ failure: Failure, lines: [String]? = nil) {
    if isJSON {
      emit(["error": failure])
    } else {
      write(lines ?? failure.lines, to: .standardError)
    }
  }

  /// Writes a note, or a failure that does not end the command, unless the output is JSON.
  func note(_ lines: [String]) {
    guard !isJSON else { return }
    write(lines, to: .standardError)
  }

  /// Writes a question, without a newline at the end.
  func ask(_ lines: [String]) {
    write(lines.map(printable).joined(separator: "\n"), to: .standardError)
  }

  private func emit(_ value: any Encodable) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if !hasLines, isatty(STDOUT_FILENO) == 1 { encoder.outputFormatting.insert(.prettyPrinted) }
    do {
      let json = String(decoding: try encoder.encode(SchemaJSON(value)), as: UTF8.self)
      write(Self.escapingInvisible(json) + "\n", to: .standardOutput)
    } catch {
      write(["docsync: the result could not be written as JSON: \(error)"], to: .standardError)
      Self.end()
    }
  }

  /// Escapes all characters that are not safe to show, like `\\u001b`. The encoder escapes only the
  /// first 32 characters. Outside of strings JSON has no such characters but newlines.
  private static func escapingInvisible(_ json: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in json.unicodeScalars {
      guard scalar != "\n", scalar.isUnsafeToShow else {
        result.append(scalar)
        continue
      }
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        result.append(
          contentsOf: ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits)
            .unicodeScalars)
      }
    }
    return String(result)
  }

  /// Writes lines. Names in them come from elsewhere, and may have newlines.
  private func write(_ lines: [String], to handle: FileHandle) {
    let hasColours = Self.hasColours(handle)
    let text = lines.map { line in
      let line = printable(line)
      return (hasColours ? Self.coloured(line) : line) + "\n"
    }
    write(text.joined(), to: handle)
  }

  /// The beginnings of lines that are shown in a colour, with the code of the colour.
  private static let colours = [
    ("docsync: ", "1;31"), ("error: ", "1;31"), ("warning: ", "33"), ("waiting: ", "33"),
    ("  next: ", "1"),
  ]

  private static func coloured(_ line: String) -> String {
    guard let (begin, code) = colours.first(where: { line.hasPrefix($0.0) }) else { return line }
    return "\u{1B}[\(code)m\(begin)\u{1B}[0m" + line.dropFirst(begin.count)
  }

  /// Whether the output goes to a terminal that shows colours, and its user wants them
  /// (https://no-color.org).
  private static func hasColours(_ handle: FileHandle) -> Bool {
    let environment = ProcessInfo.processInfo.environment
    return isatty(handle.fileDescriptor) == 1 && environment["TERM"] != "dumb"
      && environment["NO_COLOR", default: ""].isEmpty
  }

  /// Writes text that is safe to show.
  private func write(_ text: String, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: Data(text.utf8))
    } catch {
      // If the program that reads the output has ended, it wants no more.
      if Self.isBrokenPipe(error) { Self.end(bySignal: SIGPIPE) }
      let sentence = "docsync: the output could not be written: \(error.localizedDescription)"
      if handle !== FileHandle.standardError { write([sentence], to: .standardError) }
      Self.end()
    }
  }

  private static func isBrokenPipe(_ error: any Error) -> Bool {
    let error = error as NSError
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
    return cause.domain == NSPOSIXErrorDomain && cause.code == Int(EPIPE)
  }

  /// What is done before the process ends since its output cannot be written.
  private static let endings = Mutex<[@Sendable () -> Void]>([])

  /// Adds what is to be done before the process ends since its output cannot be written.
  static func beforeEnding(_ body: @escaping @Sendable () -> Void) {
    endings.withLock { $0.append(body) }
  }

  /// Ends the process, by a signal if one is given.
  private static func end(bySignal number: Int32? = nil) -> Never {
    // An ending may fail to write, too.
    let bodies = endings.withLock { bodies in
      defer { bodies = [] }
      return bodies
    }
    for body in bodies { body() }
    if let number {
      signal(number, SIG_DFL)
      raise(number)
    }
    exit(ExitStatus.failed.rawValue)
  }
}
