// What an app needs of the other modules comes with `import DocumentSync`.
@_exported import SyncDirectory
@_exported import SyncModel
@_exported import SyncStore
