import SyncModel
