package wine

// Identity is a version of Windows.
type Identity struct {
	// ProductName and EditionID are registry values such as "Windows Server 2022 Datacenter" and
	// "ServerDatacenter".
	ProductName, EditionID string
	// ReleaseID and DisplayVersion are the version names, such as "2009" and "21H2". Windows Server 2019 has no
	// DisplayVersion.
	ReleaseID, DisplayVersion string
	// Build is the number of the release (20348), Revision the number of the last update (681).
	Build, Revision int
}

// WindowsServer2022 returns Windows Server 2022 with the oldest supported update.
func WindowsServer2022() Identity {
	return Identity{
		ProductName: "Windows Server 2022 Datacenter", EditionID: "ServerDatacenter", ReleaseID: "2009",
		DisplayVersion: "21H2",
		Build:          20348, Revision: 681,
	}
}

// WindowsServer2019 returns Windows Server 2019, version 1809.
func WindowsServer2019() Identity {
	return Identity{
		ProductName: "Windows Server 2019 Datacenter", EditionID: "ServerDatacenter", ReleaseID: "1809",
		Build: 17763, Revision: 5936,
	}
}
