#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a piece of work cost.
struct Measurement {
  /// Seconds of processor time, user and system, of all threads.
  var processor = 0.0
  /// Seconds that passed.
  var elapsed = 0.0

  /// Runs `body` and measures it.
  static func of<Result>(_ body: () throws -> Result) rethrows -> (Result, Measurement) {
    let processorBefore = seconds(of: CLOCK_PROCESS_CPUTIME_ID)
    let elapsedBefore = seconds(of: CLOCK_MONOTONIC)
    let result = try body()
    return (
      result,
      Measurement(
        processor: seconds(of: CLOCK_PROCESS_CPUTIME_ID) - processorBefore,
        elapsed: seconds(of: CLOCK_MONOTONIC) - elapsedBefore)
    )
  }

  // The same account as getrusage(RUSAGE_SELF), in nanoseconds.
  private static func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }
}

/// What the benchmark measures of one subject in one workload.
enum Quantity: String, CaseIterable, Codable {
  /// CPU seconds of the writes.
  case write
  /// CPU seconds to make the payload: for the extension a changeset, for
  /// DocumentSync sealed files, compressed and hashed.
  case extract
  /// CPU seconds to make a patchset (the extension only).
  case extractPatchset
  /// CPU seconds to compress the patchset with zlib, level 6.
  case compress
  /// CPU seconds to apply on the other device.
  case apply
  /// CPU seconds to apply a patchset (the extension only).
  case applyPatchset
  /// CPU seconds to inflate the compressed changeset.
  case inflate
  /// Bytes that travel, compressed.
  case payload
  /// Bytes of the changeset before compression.
  case rawPayload
  /// Bytes of the first device's file after the writes, before the export.
  case fileBeforeExport
  /// Bytes of the first device's file at the end of the workload.
  case file
  /// Bytes of the second device's file at the end of the workload.
  case secondFile
  /// Bytes of tables and indexes of bookkeeping in the first device's file.
  case bookkeeping
  /// The same in the second device's file.
  case secondBookkeeping

  /// Whether it is a time and not a number of bytes.
  var isTime: Bool {
    switch self {
    case .write, .extract, .extractPatchset, .compress, .apply, .applyPatchset, .inflate: true
    default: false
    }
  }
}

/// Every figure of every round.
struct Samples {
  /// Which figure.
  struct Key: Hashable {
    var workload: Workload
    var subject: SubjectName
    var quantity: Quantity
  }

  private(set) var rounds: [Key: [Double]] = [:]

  /// Adds the figures of one workload of one subject in one round.
  mutating func add(_ figures: [Quantity: Double], of subject: SubjectName, in workload: Workload) {
    for (quantity, value) in figures {
      rounds[Key(workload: workload, subject: subject, quantity: quantity), default: []]
        .append(value)
    }
  }

  /// The figures of all rounds; empty if it was not measured.
  func values(_ quantity: Quantity, of subject: SubjectName, in workload: Workload) -> [Double] {
    rounds[Key(workload: workload, subject: subject, quantity: quantity)] ?? []
  }

  /// The middle figure; `nil` if it was not measured.
  func median(_ quantity: Quantity, of subject: SubjectName, in workload: Workload) -> Double? {
    values(quantity, of: subject, in: workload).median
  }
}

extension [Double] {
  /// The middle value, or the mean of the two in the middle.
  var median: Double? {
    if isEmpty { return nil }
    let ordered = sorted()
    return (ordered[(count - 1) / 2] + ordered[count / 2]) / 2
  }
}
