import SyncModel

extension Remedy {
  /// The remedy with the commands and options of docsync.
  func commandText(at place: CommandPlace = .elsewhere) -> String {
    text(here: { $0.command(at: place) }, elsewhere: { $0.command(at: .elsewhere) })
  }
}

extension Remedy.Action {
  /// The command or the option for the action.
  func command(at place: CommandPlace) -> String {
    let (store, setUp) = (place.storeWord, place.setUpWords)
    return switch self {
    case .create: "“docsync init \(setUp)”"
    case .join: "“docsync join \(setUp)”"
    case .joinReplacing: "“docsync join \(setUp) --replace”"
    case .joinMerging: "“docsync join \(setUp) --merge”"
    case .synchronize: "“docsync sync \(store)”"
    case .synchronizeThoroughly: "“docsync sync \(store) --thorough”"
    case .synchronizeRejoining: "“docsync sync \(store) --rejoin”"
    case .synchronizeRecreating: "“docsync sync \(store) --recreate”"
    case .synchronizeMerging: "“docsync sync \(store) --merge”"
    case .reset: "“docsync reset \(store)”"
    case .upload: "“docsync upload \(store)”"
    case .verify: "“docsync verify \(store)”"
    case .leave: "“docsync leave \(store)”"
    case .leaveAbandoning: "“docsync leave \(store) --abandon”"
    case .removeClient: "“docsync remove-client \(store) CLIENT”"
    case .deleteDocument: "“docsync delete-document DOCUMENT --directory \(place.directoryWord)”"
    case .listClients: "“docsync clients \(store)”"
    case .listDocuments: "“docsync documents --directory \(place.directoryWord)”"
    case .listChangeSets: "“docsync log \(store)”"
    case .listConflicts: "“docsync conflicts \(store)”"
    case .answerConflict(let number): "“docsync conflicts \(store) resolve \(number)”"
    case .restoreConflict(let number): "“docsync conflicts \(store) restore \(number)”"
    case .exclude(let table, let column):
      "--exclude \(shellWord(QualifiedName(table: table, column: column).option))"
    case .identify(let table): "--identity \(shellWord(QualifiedName(table: table).option))"
    case .identifyByPrimaryKey(let table):
      "--identity \(shellWord(QualifiedName(table: table).option + "=primaryKey"))"
    }
  }
}
