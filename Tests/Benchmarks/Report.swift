import CSQLite
import Foundation

/// What `--json` prints: every figure, every ratio, every target.
struct Report: Codable {
  /// The form of this object; raised when a field changes its meaning.
  var version = 1
  var machine: Machine
  var settings: Settings
  var figures: [Figure] = []
  var ratios: [Ratio] = []
  /// Bytes of each bookkeeping table with its indexes after the last
  /// workload, on the first device.
  var bookkeeping: [String: Int64] = [:]
  var memory: [Memory] = []

  /// Where it ran.
  struct Machine: Codable {
    var system = ProcessInfo.processInfo.operatingSystemVersionString
    var processors = ProcessInfo.processInfo.activeProcessorCount
    var sqlite = String(cString: sqlite3_libversion())
    var directory: String
    /// Whether the compiler optimized; figures of a debug build mean nothing.
    var optimized: Bool
  }

  /// What was asked for.
  struct Settings: Codable {
    var rows: Int
    var rounds: Int
    var workloads: [Workload]
    var subjects: [SubjectName]
  }

  /// A quantity of one subject in one workload: seconds or bytes.
  struct Figure: Codable {
    var workload: Workload
    var subject: SubjectName
    var quantity: Quantity
    var median: Double
    var rounds: [Double]
  }

  /// One figure against another: the median of the ratios of the rounds.
  struct Ratio: Codable {
    var aspect: Comparison.Aspect
    var title: String
    var workload: Workload
    var median: Double
    var least: Double
    var greatest: Double
    var target: Double?
    var reached: Bool?
  }

  /// Peaks over the idle process, in bytes.
  struct Memory: Codable {
    /// Export and apply of a million rows keep to this.
    static let target = 64 << 20

    var subject: SubjectName
    var rows: Int
    var write: Int?
    var extract: Int?
    var apply: Int?
    var reached: Bool?
  }

  init(
    directory: URL, rows: Int, rounds: Int, workloads: [Workload], subjects: [SubjectName],
    samples: Samples
  ) {
    #if DEBUG
      let optimized = false
    #else
      let optimized = true
    #endif
    machine = Machine(directory: directory.path, optimized: optimized)
    settings = Settings(rows: rows, rounds: rounds, workloads: workloads, subjects: subjects)
    for workload in workloads {
      for subject in subjects {
        for quantity in Quantity.allCases {
          let values = samples.values(quantity, of: subject, in: workload)
          guard let median = values.median else { continue }
          figures.append(
            Figure(
              workload: workload, subject: subject, quantity: quantity, median: median,
              rounds: values))
        }
      }
      for comparison in Comparison.all {
        let values = comparison.ratios(in: workload, of: samples)
        guard let median = values.median, let least = values.min(), let greatest = values.max()
        else { continue }
        let target = comparison.targets[workload]
        ratios.append(
          Ratio(
            aspect: comparison.aspect, title: comparison.title, workload: workload,
            median: median, least: least, greatest: greatest, target: target,
            reached: target.map { median <= $0 }))
      }
    }
  }

  /// Adds the peaks of one subject.
  mutating func addMemory(_ peaks: [MemoryPhase: Int], of subject: SubjectName, rows: Int) {
    var memory = Memory(
      subject: subject, rows: rows, write: peaks[.write], extract: peaks[.extract],
      apply: peaks[.apply])
    if subject == .documentSync, let extract = memory.extract, let apply = memory.apply {
      memory.reached = max(extract, apply) <= Memory.target
    }
    self.memory.append(memory)
  }

  /// The object as text.
  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}
