/// A random history, drawn from a seed.
struct RandomPlan {

  private let seed: UInt64
  private let options: Fleet.Options
  private var dice: Dice
  /// The true time, in milliseconds since 1970.
  private var time: Int64 = 1_700_000_000_000
  /// The error of each device's clock, in milliseconds.
  private var offsets: [Int: Int64] = [:]
  /// Whether devices exchange their edits often, so that most change sets depend on others. If not,
  /// they often work for long without exchange.
  private var isLively: Bool
  private var migrations: RandomMigrations
  private var held: RandomHeldEdits
  private var names: RandomNames

  init(seed: UInt64, options: Fleet.Options) {
    self.seed = seed
    self.options = options
    dice = Dice(seed: seed)
    var moods = Dice(seed: ~seed)
    isLively = moods.chance(50)
    migrations = RandomMigrations(seed: seed, features: options.features)
    held = RandomHeldEdits(seed: seed, options: options)
    names = RandomNames(seed: seed, options: options)
  }

  mutating func draw() throws -> FleetPlan {
    var schemas = RandomSchema(seed: dice.word(), features: options.features)
    var schema = schemas.draw()
    var values = RandomValues(seed: seed, features: options.features)
    values.draw(&schema)
    var keys = RandomKeys(seed: seed, features: options.features)
    keys.draw(&schema)
    var joins = RandomJoins(seed: seed, features: options.features)
    joins.draw(&schema)
    var missing = RandomMissingKeys(seed: seed, features: options.features)
    missing.draw(&schema)
    var merging = RandomMerging(
      seed: seed, features: options.features, always: options.always)
    merging.drawTypes(&schema)
    var plainKeys = RandomPlainKeys(seed: seed, features: options.features)
    plainKeys.draw(&schema)
    var chains = RandomChains(seed: seed, options: options)
    chains.draw(&schema)
    var affinities = RandomAffinities(seed: seed, options: options)
    affinities.draw(&schema)
    names.draw(&schema)
    var loose = RandomLooseTables(seed: seed, options: options, &names)
    loose.draw(&schema)
    var marks = RandomMarks(seed: seed, options: options)
    marks.draw(&schema)
    var forms = RandomForms(seed: seed, options: options)
    forms.draw(&schema)
    if options.features.contains(.triggers), dice.chance(15) {
      let edits = RandomEdit(schema: schema, features: options.features)
      schema.triggers += (1...2).map { edits.trigger("trigger\($0)", &dice) }
    }
    let edits = RandomEdit(schema: schema, features: options.features)
    var start = (0..<dice.pick([0, 6, 15, 25])).map { _ in edits.insertion(&dice) }
    // Draw these in any case, so that the rest does not depend on the options.
    let drawn = dice.pick(weighted: [(35, 2), (45, 3), (15, 4), (5, 5)])
    let drawsManagers = dice.chance(20)
    let devices = Array(1...max(options.devices ?? drawn, 1))
    var circumstances = RandomCircumstances(seed: seed, features: options.features)
    var drawnCircumstances = circumstances.draw(devices)
    if held.isDrawn { drawnCircumstances.memoryBytes = RandomHeldEdits.memoryBytes }
    let usesManagers =
      options.usesManagers ?? (drawsManagers || circumstances.wantsManagers(drawnCircumstances))
    for device in devices where dice.chance(50) { offsets[device] = skew() }
    var steps: [FleetStep] = []
    var moods = Dice(seed: seed ^ 0x6c6f_6e67)
    var size = RandomSize(seed: seed, features: options.features)
    let isLong = moods.chance(size.percentage) && options.features.contains(.long)
    if isLong {
      for table in schema.tables {
        let bulk = edits.bulk(of: 10 + moods.below(60), in: table, &moods)
        if !schema.hasPlainKeys(table) { start.append(bulk) }
      }
      start += try size.inserts(into: schema, besides: start, edits)
      isLively = true
    }
    held.add(to: &start, schema)
    start += loose.start()
    migrations.draw(schema, devices, canDrop: usesManagers, &names)
    if usesManagers {
      migrations.mix(
        forms.migrations(schema, besides: migrations.migrations), schema, devices)
    }
    if let migration = loose.migration() { migrations.add(migration, schema, devices) }
    while steps.count < (isLong ? 4 : 1) * options.steps { append(to: &steps, devices, edits) }
    while isLong, size.goesOn(after: steps, drawnCircumstances) {
      appendExchange(to: &steps, devices, edits, &size)
    }
    if usesManagers, options.features.contains(.remakes) {
      var remakes = RandomRemakes(seed: seed, features: options.features)
      remakes.draw(
        into: &steps, devices, schema, migrates: !migrations.migrations.isEmpty)
    }
    loose.draw(into: &steps, devices, schema)
    marks.draw(
      into: &steps, devices, schema, migrates: !migrations.migrations.isEmpty)
    // A store reads the former state of a column from files that the device has seen.
    if usesManagers, !migrations.migrations.isEmpty {
      steps.removeAll { if case .hide = $0 { true } else { false } }
    }
    steps = circumstances.interrupt(steps)
    var halves = RandomHalves(seed: seed, options: options)
    let hearsOfRows = halves.hearsOfRows()
    steps = halves.kill(halves.halve(steps, devices))
    return FleetPlan(
      seed: seed, schema: schema, start: start, rowsWithoutKey: missing.rows(schema, edits),
      devices: devices, usesManagers: usesManagers, steps: steps,
      policies: merging.policies(of: devices, schema),
      circumstances: drawnCircumstances, migrations: migrations.migrations, isLong: isLong,
      hearsOfRows: hearsOfRows, hasLooseTables: loose.isDrawn)
  }

  /// Lets a device make its next migration, if it is time for that. Returns the edits of its
  /// programs from then on.
  private mutating func migrated(
    _ device: Int, _ edits: RandomEdit, _ steps: inout [FleetStep]
  ) -> RandomEdit {
    if migrations.isTime(for: device) {
      steps.append(.migrate(device: device, time: time + (offsets[device] ?? 0)))
    }
    return migrations.version(of: device).map {
      RandomEdit(schema: $0.local, features: options.features)
    } ?? edits
  }

  /// A device edits, hears of others, and synchronizes.
  private mutating func appendExchange(
    to steps: inout [FleetStep], _ devices: [Int], _ edits: RandomEdit, _ size: inout RandomSize
  ) {
    let device = dice.pick(devices)
    let edits = migrated(device, edits, &steps)
    for statement in size.insertsOfOneRow(edits, number: steps.count) {
      steps.append(.edit(device: device, edit(device, [statement])))
    }
    steps.append(.edit(device: device, edit(device, held.enlarged(edits.draw(&dice), edits))))
    steps.append(
      .arrivals(device: device, percent: dice.pick([100, 70, 40, 0]), salt: dice.word()))
    steps.append(sync(device))
  }

  private mutating func append(to steps: inout [FleetStep], _ devices: [Int], _ edits: RandomEdit) {
    let device = dice.pick(devices)
    let event = dice.below(100)
    let edits = migrated(device, edits, &steps)
    switch isLively ? Self.lively(event) : event {
    case 0..<62:
      // A program edits for a while.
      for _ in 0..<(1 + dice.below(isLively ? 2 : 4)) {
        steps.append(.edit(device: device, edit(device, held.enlarged(edits.draw(&dice), edits))))
      }
    case 62..<80:
      steps.append(
        .arrivals(
          device: device, percent: dice.pick([100, 100, 70, 40, 20]), salt: dice.word()))
      steps.append(sync(device))
    case 80..<90: steps.append(sync(device))
    case 90..<94: steps.append(.hide(device: device, salt: dice.word()))
    default: offsets[device] = skew()
    }
  }

  /// Replaces many of the events in which a program edits with exchanges.
  private static func lively(_ event: Int) -> Int { event < 31 ? event + 49 : event }

  private mutating func edit(_ device: Int, _ statements: [String]) -> FleetEdit {
    var edit = FleetEdit(
      statements: statements,
      hasForeignKeys: !options.features.contains(.foreignKeysOff) || dice.chance(88),
      time: now(device), salt: dice.word())
    var manners = Dice(seed: ~edit.salt)
    edit.hasRecursiveTriggers =
      manners.chance(10) && options.features.contains(.recursiveTriggers)
    for index in edit.statements.indices
    where manners.chance(15) && options.features.contains(.returning) {
      edit.statements[index] = RandomEdit.returning(edit.statements[index])
    }
    return edit
  }

  private mutating func sync(_ device: Int) -> FleetStep {
    .sync(device: device, time: now(device), salt: dice.word())
  }

  /// Advances the time, sometimes not at all, and returns the time of a device's clock.
  private mutating func now(_ device: Int) -> Int64 {
    time += dice.pick([0, 0, 1, 5_000, 3_600_000])
    return time + (offsets[device] ?? 0)
  }

  /// Draws the error of a clock: zero, a minute, or years.
  private mutating func skew() -> Int64 {
    let year: Int64 = 31_557_600_000
    return dice.pick([0, 0, 60_000, -60_000, year, -year, 20 * year, -60 * year])
  }
}
