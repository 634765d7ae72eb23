package host

// RegistryName names a value below HKEY_LOCAL_MACHINE.
type RegistryName struct {
	Key  string `json:"key"` // SYSTEM\CurrentControlSet\Services\hns\State
	Name string `json:"name"`
}

// String returns the name in the notation of registry editors.
func (n RegistryName) String() string { return `HKLM\` + n.Key + `\` + n.Name }
