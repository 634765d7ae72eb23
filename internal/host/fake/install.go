package fake

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// freshDirectories are the directories of a freshly installed server, parents first.
var freshDirectories = []string{
	`C:\PerfLogs`, `C:\Program Files`, `C:\Program Files\Common Files`, `C:\Program Files\Windows Defender`,
	`C:\Program Files\WindowsPowerShell`, `C:\Program Files\WindowsPowerShell\Modules`, `C:\Program Files (x86)`,
	`C:\ProgramData`, `C:\ProgramData\Microsoft`, `C:\ProgramData\Microsoft\Windows`, `C:\ProgramData\ssh`,
	`C:\ProgramData\ssh\logs`, `C:\Users`, `C:\Users\Administrator`, `C:\Users\Administrator\.ssh`,
	`C:\Users\Administrator\Documents`, `C:\Users\Public`, `C:\Windows`, `C:\Windows\Logs`, `C:\Windows\System32`,
	`C:\Windows\System32\config`, `C:\Windows\System32\drivers`, `C:\Windows\System32\drivers\etc`,
	`C:\Windows\System32\OpenSSH`, `C:\Windows\System32\WindowsPowerShell`, `C:\Windows\System32\WindowsPowerShell\v1.0`,
	`C:\Windows\Temp`,
}

var freshFiles = map[string]string{
	`C:\ProgramData\ssh\sshd_config`: "#PubkeyAuthentication yes\r\n#PasswordAuthentication yes\r\nSubsystem\tsftp\tsftp-server.exe\r\n" +
		"Match Group administrators\r\n       AuthorizedKeysFile __PROGRAMDATA__/ssh/administrators_authorized_keys\r\n",
	`C:\ProgramData\ssh\ssh_host_ed25519_key.pub`: "ssh-ed25519 (kept by the SSH server of the test machine)\r\n",
	`C:\Windows\System32\drivers\etc\hosts`:       "# 127.0.0.1 localhost\r\n",
	`C:\Windows\win.ini`:                          "; for 16-bit app support\r\n",
}

// systemDaemons and systemTools are executables below System32.
var (
	systemDaemons = []string{
		"csrss.exe", "lsass.exe", "services.exe", "smss.exe", "svchost.exe", "wininit.exe", `OpenSSH\sshd.exe`,
		`OpenSSH\ssh-agent.exe`,
	}
	systemTools = []string{
		"cmd.exe", "dism.exe", "hostname.exe", "icacls.exe", "ipconfig.exe", "net.exe", "netsh.exe", "reg.exe",
		"robocopy.exe", "sc.exe",
		"schtasks.exe", "setx.exe", "shutdown.exe", "tar.exe", "taskkill.exe", "tasklist.exe", "wevtutil.exe", "whoami.exe",
		`OpenSSH\sftp-server.exe`, `WindowsPowerShell\v1.0\powershell.exe`,
	}
)

// sshService is the service of the SSH server.
const sshService = "sshd"

// systemServices are representative services of Windows that the product does not use.
var systemServices = []host.ServiceConfig{
	{Name: "Dhcp", DisplayName: "DHCP Client", StartType: host.StartAutomatic},
	{Name: "Dnscache", DisplayName: "DNS Client", StartType: host.StartAutomatic, Dependencies: []string{"nsi"}},
	{Name: "EventLog", DisplayName: "Windows Event Log", StartType: host.StartAutomatic},
	{Name: "nsi", DisplayName: "Network Store Interface Service", StartType: host.StartAutomatic},
	{Name: "ssh-agent", DisplayName: "OpenSSH Authentication Agent",
		CommandLine: `C:\Windows\System32\OpenSSH\ssh-agent.exe`, StartType: host.StartDisabled},
	{Name: sshService, DisplayName: "OpenSSH SSH Server", CommandLine: `C:\Windows\System32\OpenSSH\sshd.exe`,
		StartType: host.StartAutomatic},
	{Name: "W32Time", DisplayName: "Windows Time", StartType: host.StartManual},
	{
		Name: host.DefenderService, DisplayName: "Microsoft Defender Antivirus Service",
		CommandLine: host.CommandLine(defenderPath), StartType: host.StartAutomatic,
	},
	{Name: "WinRM", DisplayName: "Windows Remote Management (WS-Management)", StartType: host.StartAutomatic},
}

// installWindows initializes the drive and the service control manager as the setup of Windows does. It panics if the
// options contain an invalid service.
func (m *Machine) installWindows() {
	for _, folder := range freshDirectories {
		m.panicOnError(m.drive.makeDirectory(folder, host.AccessInherited))
	}
	m.panicOnError(m.drive.makeDirectory(`C:\ProgramData\ssh`, host.AccessAdministrators))
	for path, content := range freshFiles {
		m.placeFile(path, []byte(content))
	}
	for _, name := range systemDaemons {
		m.placeFile(`C:\Windows\System32\`+name, systemContent(name, true))
	}
	for _, name := range systemTools {
		m.placeFile(`C:\Windows\System32\`+name, systemContent(name, false))
	}
	m.placeFile(defenderPath, systemContent(host.DefenderProgram, true))
	for _, config := range systemServices {
		if config.Name == sshService {
			config.StartType = cmp.Or(m.options.SSHStart, config.StartType)
		}
		if config.CommandLine == "" {
			config.CommandLine = `C:\Windows\System32\svchost.exe -k netsvcs -p -s ` + config.Name
		}
		config.RestartDelays, config.ResetPeriod = []time.Duration{time.Minute}, 24*time.Hour
		m.panicOnError(false, m.configureService(config))
	}
	for _, config := range m.options.Services {
		m.panicOnError(false, m.configureService(config))
	}
}

func (m *Machine) placeFile(path string, data []byte) {
	folder, err := m.drive.resolveExisting(path[:strings.LastIndexByte(path, '\\')], true)
	m.panicOnError(false, err)
	m.drive.setContent(m.drive.addNode(folder.node, baseName(path), host.AccessInherited), m.drive.contents.internContent(data))
}

// panicOnError panics on errors, because the fresh machine consists of constants and options written in code.
func (m *Machine) panicOnError(_ bool, err error) {
	if err != nil {
		panic(fmt.Sprintf("create test machine %s: %v", m.options.Name, err))
	}
}

func compareNames(a, b string) int { return strings.Compare(foldCase(a), foldCase(b)) }
