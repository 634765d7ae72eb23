package wine

// Identity is a version of Windows.
type Identity struct {
	// ProductName and EditionID are as in the registry: "Windows Server 2022 Datacenter", "ServerDatacenter".
	ProductName, EditionID string
	// ReleaseID and DisplayVersion are the version by name: "2009", "21H2". Windows Server 2019 has no DisplayVersion.
	ReleaseID, DisplayVersion string
	// Build is the release's number (20348), Revision the last update's (681).
	Build, Revision int
}

// WindowsServer2022 is Windows Server 2022 with the oldest update that is supported.
func WindowsServer2022() Identity {
	return Identity{
		ProductName: "Windows Server 2022 Datacenter", EditionID: "ServerDatacenter", ReleaseID: "2009",
		DisplayVersion: "21H2",
		Build:          20348, Revision: 681,
	}
}

// WindowsServer2019 is Windows Server 2019, version 1809.
func WindowsServer2019() Identity {
	return Identity{
		ProductName: "Windows Server 2019 Datacenter", EditionID: "ServerDatacenter", ReleaseID: "1809",
		Build: 17763, Revision: 5936,
	}
}
