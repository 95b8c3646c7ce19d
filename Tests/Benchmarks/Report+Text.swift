import Foundation

extension Report {
  /// The report for people.
  func text() -> String {
    var lines = [
      "SQLite \(machine.sqlite), \(machine.processors) processors, files in \(machine.directory)",
      "\(settings.rows) rows, \(settings.rounds) rounds; times are CPU seconds, all are medians",
    ]
    if !machine.optimized {
      lines.append("This build is not optimized: the figures mean nothing. Use -c release.")
    }
    for workload in settings.workloads {
      lines += ["", "\(workload.rawValue)  \(workload.summary)"]
      lines += figureLines(of: workload)
      lines += ratioLines(of: workload)
    }
    if !bookkeeping.isEmpty {
      lines += ["", "Bookkeeping after the last workload, first device"]
      for (table, size) in bookkeeping.sorted(by: { $0.value > $1.value }) {
        lines.append("  " + column(table, 44) + megabytes(Double(size)))
      }
    }
    if !memory.isEmpty { lines += ["", "Peak memory over the idle process, W1"] + memoryLines() }
    return lines.joined(separator: "\n")
  }

  private func figureLines(of workload: Workload) -> [String] {
    let measured = figures.filter { $0.workload == workload }
    var lines = [
      "  " + column("", 24)
        + settings.subjects.map { column($0.rawValue, 14, right: true) }.joined()
    ]
    for quantity in Quantity.allCases {
      let row = settings.subjects.map { subject in
        measured.first { $0.subject == subject && $0.quantity == quantity }?.median
      }
      if row.allSatisfy({ $0 == nil || $0 == 0 }) { continue }
      let cells = row.map { value in
        column(
          value.map { quantity.isTime ? String(format: "%.4f s", $0) : megabytes($0) } ?? "–", 14,
          right: true)
      }
      lines.append("  " + column(quantity.rawValue, 24) + cells.joined())
    }
    return lines
  }

  private func ratioLines(of workload: Workload) -> [String] {
    var lines: [String] = []
    for aspect in Comparison.Aspect.allCases {
      let rows = ratios.filter { $0.workload == workload && $0.aspect == aspect }
      if rows.isEmpty { continue }
      lines.append("  \(aspect.title)")
      for row in rows {
        var line = "    " + column(row.title, 46) + String(format: "%6.3f", row.median)
        line += column(String(format: "(%.3f–%.3f)", row.least, row.greatest), 16, right: true)
        if let target = row.target, let reached = row.reached {
          line += String(format: "  ≤ %.2f ", target) + (reached ? "reached" : "NOT REACHED")
        }
        lines.append(line)
      }
    }
    return lines
  }

  private func memoryLines() -> [String] {
    var lines = [
      "  " + column("", 28)
        + ["write", "extract", "apply"].map { column($0, 12, right: true) }.joined()
    ]
    for row in memory {
      let cells = [row.write, row.extract, row.apply].map { peak in
        column(peak.map { megabytes(Double($0)) } ?? "–", 12, right: true)
      }
      var line = "  " + column("\(row.subject.rawValue), \(row.rows) rows", 28) + cells.joined()
      if let reached = row.reached {
        line += "  ≤ \(megabytes(Double(Memory.target))) " + (reached ? "reached" : "NOT REACHED")
      }
      lines.append(line)
    }
    return lines
  }

  private func megabytes(_ bytes: Double) -> String { String(format: "%.3f MB", bytes / 1e6) }

  private func column(_ text: String, _ width: Int, right: Bool = false) -> String {
    let padding = String(repeating: " ", count: max(0, width - text.count))
    return right ? padding + text : text + padding
  }
}
