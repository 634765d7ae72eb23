package main

// Parameters of every cmdlet.
const (
	commonParameters = "ErrorAction=Continue|Ignore|Inquire|SilentlyContinue|Stop ErrorVariable OutBuffer OutVariable PipelineVariable " +
		"WarningAction=Continue|Inquire|SilentlyContinue|Stop WarningVariable InformationAction InformationVariable"
	commonSwitches = "Debug Verbose"
)

// firewallSelection and firewallProperties contain the parameters that the cmdlets for firewall rules share.
const (
	firewallSelection  = "Name DisplayName Group DisplayGroup Description AsJob CimSession ThrottleLimit PolicyStore GPOSession "
	firewallProperties = "Enabled=True|False Profile=Any|Domain|Private|Public|NotApplicable Platform Direction=Inbound|Outbound " +
		"Action=NotConfigured|Allow|Block EdgeTraversalPolicy=Block|Allow|DeferToUser|DeferToApp LocalAddress RemoteAddress Protocol LocalPort " +
		"RemotePort IcmpType DynamicTarget Program Package Service InterfaceAlias InterfaceType LocalUser RemoteUser RemoteMachine " +
		"Authentication Encryption "
	firewallSwitches = "LooseSourceMapping LocalOnlyMapping OverrideBlockRules AsJob WhatIf Confirm "
)

// cmdlets contains the commands that scripts may use, as documented by Microsoft for Windows PowerShell 5.1 and
// Windows Server 2019 to 2025.
var cmdlets = map[string]cmdlet{
	"Add-Content": {
		parameters: "Path LiteralPath Value Encoding Filter Include Exclude Credential Stream",
		switches:   "PassThru Force NoNewline WhatIf Confirm", positional: 2,
	},
	"Add-WindowsCapability": {
		parameters: "Name Path Source LogPath LogLevel ScratchDirectory SystemDrive WindowsDirectory",
		switches:   "Online LimitAccess", needs: []string{"Name", "Online"},
	},
	"ConvertTo-SecureString": {parameters: "String Key SecureKey", switches: "AsPlainText Force", positional: 1,
		needs: []string{"String", "AsPlainText", "Force"}},
	"Enable-LocalUser": {parameters: "Name InputObject SID", switches: "WhatIf Confirm", positional: 1},
	"ForEach-Object": {parameters: "Process Begin End RemainingScripts InputObject MemberName ArgumentList",
		switches: "WhatIf Confirm", positional: 1},
	"Get-LocalUser": {parameters: "Name SID", positional: 1},
	"Get-NetFirewallRule": {
		parameters: firewallSelection + firewallProperties + "AssociatedNetworkAddressFilter AssociatedNetworkPortFilter",
		switches:   "All AsJob TracePolicyStore", ofModule: true,
	},
	"Get-NetTCPConnection": {
		parameters: "LocalAddress LocalPort RemoteAddress RemotePort State=Bound|Closed|CloseWait|Closing|DeleteTCB|Established|FinWait1|FinWait2|LastAck|Listen|SynReceived|SynSent|TimeWait " +
			"AppliedSetting OwningProcess CreationTime OffloadState CimSession ThrottleLimit",
		switches: "AsJob", ofModule: true,
	},
	"Get-Service": {parameters: "Name DisplayName ComputerName Include Exclude InputObject",
		switches: "DependentServices RequiredServices", positional: 1},
	"Get-WinEvent": {parameters: "LogName ProviderName Path FilterHashtable FilterXPath FilterXml MaxEvents ComputerName Credential", switches: "Oldest Force", positional: 1},
	"Join-Path":    {parameters: "Path ChildPath Credential", switches: "Resolve", positional: 2},
	"New-NetFirewallRule": {
		parameters: firewallSelection + firewallProperties, switches: firewallSwitches, ofModule: true,
		needs: []string{"DisplayName", "Direction", "Action"}, // explicit, instead of the defaults
	},
	"New-Object": {parameters: "TypeName ArgumentList Property ComObject", switches: "Strict", positional: 2},
	"Out-Null":   {parameters: "InputObject"},
	"Restart-Service": {parameters: "Name DisplayName InputObject Include Exclude", switches: "Force PassThru WhatIf Confirm",
		positional: 1},
	"Set-LocalUser": {parameters: "Name InputObject SID AccountExpires Description FullName Password PasswordNeverExpires UserMayChangePassword", switches: "AccountNeverExpires WhatIf Confirm", positional: 1},
	"Set-NetFirewallRule": {parameters: firewallSelection + firewallProperties + "NewDisplayName",
		switches: firewallSwitches + "PassThru", ofModule: true},
	"Set-Service": {
		parameters: "Name ComputerName DisplayName Description StartupType=Automatic|Manual|Disabled|Boot|System Status=Paused|Running|Stopped InputObject",
		switches:   "PassThru WhatIf Confirm", positional: 1,
	},
	"Start-Service": {parameters: "Name DisplayName InputObject Include Exclude", switches: "PassThru WhatIf Confirm",
		positional: 1},
	"Start-Sleep":  {parameters: "Seconds Milliseconds", positional: 1},
	"Test-Path":    {parameters: "Path LiteralPath Filter Include Exclude PathType=Any|Container|Leaf Credential OlderThan NewerThan", switches: "IsValid", positional: 1},
	"Where-Object": {parameters: "FilterScript Property Value InputObject", positional: 1},
	"Write-Host": {parameters: "Object Separator ForegroundColor BackgroundColor",
		switches: "NoNewline", positional: 1},
}
