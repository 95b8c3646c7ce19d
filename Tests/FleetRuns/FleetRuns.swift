import ArgumentParser
import CSQLite
import DocumentSyncTesting
import Foundation

/// Simulates fleets of devices, one history for each seed, until one fails.
@main
struct FleetRuns: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet",
    abstract: "Simulates fleets of devices and checks that nothing is lost or differs.",
    discussion: """
      Each seed is one history. A history that fails is made shorter and printed, with the \
      command that repeats it; the exit code is 1 then. See Documentation/Reliability.md.
      """)

  @Flag(
    help: ArgumentHelp(
      "Simulate the life of a document instead of schemas and merging: devices join, leave, are "
        + "copied, restored and retired, files are removed."))
  var life = false

  @Flag(help: "Simulate databases that join a document with their rows.")
  var joining = false

  @Option(help: "How many histories to simulate.")
  var runs: UInt64 = 300

  @Option(help: "The seed of the first history; the others follow.")
  var firstSeed: UInt64 = 1

  @Option(help: "Simulate only the history of this seed.")
  var seed: UInt64?

  @Option(help: "How many devices there are, instead of 2 to 5.")
  var devices: Int?

  @Option(help: "About how many steps a history has.")
  var steps = Fleet.Options().steps

  @Option(
    help: ArgumentHelp(
      "How devices synchronize: managers, directly, or both.", valueName: "mode"))
  var mode = "both"

  @Option(
    help: ArgumentHelp(
      "Leave out of the schemas and histories, separated by commas: "
        + FleetFeatures.names.map(\.name).joined(separator: ", ") + ".",
      valueName: "features"))
  var without = ""

  @Option(
    help: ArgumentHelp(
      "Let all histories have what only some have, separated by commas: "
        + Self.optional.map(\.name).joined(separator: ", ") + ".",
      valueName: "features"))
  var always = ""

  @Option(help: "How many histories are simulated at a time.")
  var jobs = min(ProcessInfo.processInfo.activeProcessorCount, 4)

  @Option(help: "Go on until this many histories have failed.")
  var failures = 1

  @Option(help: "Begin no more histories after this many minutes.")
  var minutes = Double.infinity

  @Option(help: "How many shorter histories are tried to shrink one that fails; 0 prints none.")
  var attempts = 800

  @Flag(help: "Print nothing but failures and the result.")
  var quiet = false

  /// The features that every history can have.
  private static let optional = FleetFeatures.names.filter {
    FleetFeatures.optional.contains($0.feature)
  }

  func validate() throws {
    guard ["managers", "directly", "both"].contains(mode) else {
      throw ValidationError("--mode is managers, directly, or both.")
    }
    let names = life ? LifeFeatures.names.map(\.name) : FleetFeatures.names.map(\.name)
    for name in without.split(separator: ",") where !names.contains(String(name)) {
      throw ValidationError("“\(name)” is no feature.")
    }
    for name in always.split(separator: ",")
    where !Self.optional.contains(where: { $0.name == name }) {
      throw ValidationError(
        "--always takes \(Self.optional.map(\.name).joined(separator: ", ")), and not “\(name)”.")
    }
    if let devices, devices < 1 { throw ValidationError("--devices is at least 1.") }
    guard jobs > 0, failures > 0, steps > 0 else {
      throw ValidationError("--jobs, --failures and --steps are at least 1.")
    }
  }

  var fleetOptions: Fleet.Options {
    var options = Fleet.Options()
    options.devices = devices
    options.steps = steps
    for (name, feature) in Self.optional where always.split(separator: ",").contains(name[...]) {
      options.always.insert(feature)
    }
    options.usesManagers = mode == "both" ? nil : mode == "managers"
    for (name, feature) in FleetFeatures.names
    where without.split(separator: ",").contains(name[...]) {
      options.features.remove(feature)
    }
    return options
  }

  private var lifeFeatures: LifeFeatures {
    LifeFeatures.names.reduce(into: .all) { features, entry in
      if without.split(separator: ",").contains(entry.name[...]) { features.remove(entry.feature) }
    }
  }

  func run() async throws {
    // SQLite counts its memory behind one lock, for which all histories would wait.
    guard csqlite_disable_memory_statistics() == SQLITE_OK else {
      throw ValidationError("SQLite cannot be told not to count its memory.")
    }
    if life { return try await runLives() }
    if joining { return try await runJoinings() }
    var campaign = Campaign(
      seeds: seed.map { $0...$0 } ?? firstSeed...(firstSeed + max(runs, 1) - 1),
      options: fleetOptions, jobs: jobs, maximumFailures: failures,
      deadline: minutes.isFinite ? Date(timeIntervalSinceNow: 60 * minutes) : .distantFuture,
      isQuiet: quiet)
    let failed = try await campaign.run()
    for report in failed {
      print("\nSeed \(report.seed) fails.")
      if attempts > 0,
        let script = try await Fleet.shrunkScript(
          seed: report.seed, options: fleetOptions, attempts: attempts)
      {
        print(script)
      } else if let failure = report.failure {
        print("\(failure.kind): \(failure.details)")
      }
      print("To repeat it: \(repeatingCommand(report.seed))")
    }
    print(campaign.summary)
    print(campaign.sizeSummary)
    if !failed.isEmpty { throw ExitCode.failure }
  }

  private func runLives() async throws {
    let (features, steps, attempts) = (lifeFeatures, steps, attempts)
    let lives = try await simulate { seed in
      try await Life.run(seed: seed, features: features, steps: steps)
    } script: { seed in
      try await Life.shrunkScript(seed: seed, features: features, steps: steps, attempts: attempts)
    }
    print(
      "\(lives.count("lives")): \(lives.sum(\.edits)) edits, \(lives.sum(\.syncs)) syncs, "
        + "\(lives.sum(\.passedOver)) steps passed over, \(lives.failed.count) failed")
    if !lives.failed.isEmpty { throw ExitCode.failure }
  }

  private func runJoinings() async throws {
    let (features, attempts) = (fleetOptions.features, attempts)
    let joinings = try await simulate { seed in
      try await Joining.run(seed: seed, features: features)
    } script: { seed in
      try await Joining.shrunkScript(seed: seed, features: features, attempts: attempts)
    }
    print(
      "\(joinings.count("databases joined")): \(joinings.sum(\.rows)) rows, "
        + "\(joinings.sum(\.matchedRows)) became other rows, \(joinings.sum(\.refusedRows)) refused, "
        + "\(joinings.sum(\.references)) references followed, \(joinings.failed.count) failed")
    if !joinings.failed.isEmpty { throw ExitCode.failure }
  }

  /// Simulates what the seeds stand for, and prints those that fail.
  private func simulate<Report: SeedReport>(
    _ simulate: @escaping @Sendable (UInt64) async throws -> Report,
    script: (UInt64) async throws -> String?
  ) async throws -> SeedCampaign<Report> {
    var campaign = SeedCampaign<Report>(
      seeds: seed.map { $0...$0 } ?? firstSeed...(firstSeed + max(runs, 1) - 1),
      jobs: jobs, maximumFailures: failures,
      deadline: minutes.isFinite ? Date(timeIntervalSinceNow: 60 * minutes) : .distantFuture)
    try await campaign.run(simulate)
    for report in campaign.failed {
      print("\nSeed \(report.seed) fails.")
      if attempts > 0, let script = try await script(report.seed) {
        print(script)
      } else if let failure = report.failure {
        print("\(failure.kind): \(failure.details)")
      }
      print("To repeat it: \(repeatingCommand(report.seed))")
    }
    return campaign
  }

  private func repeatingCommand(_ seed: UInt64) -> String {
    var words = ["swift run -c release fleet --seed \(seed)"]
    if life { words.append("--life") }
    if joining { words.append("--joining") }
    if !always.isEmpty { words.append("--always \(always)") }
    if let devices { words.append("--devices \(devices)") }
    if steps != Fleet.Options().steps { words.append("--steps \(steps)") }
    if mode != "both" { words.append("--mode \(mode)") }
    if !without.isEmpty { words.append("--without \(without)") }
    return words.joined(separator: " ")
  }
}
