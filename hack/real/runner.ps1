# Prepares a GitHub runner for .github/workflows/windows.yaml and records the properties of the runner. The script has
# not been run on Windows yet.
# The image of the runners disables Windows Update, from which the user data installs OpenSSH. The Docker service of the
# image, which creates an HNS network, does not always start. Source: actions/runner-images,
# images/windows/scripts/build/Configure-System.ps1. Azure renames the account Administrator, so the account for the
# user data may be missing.
#
#   runner.ps1 [-Out FILE.json]
#
# The script changes the policy of Windows Update and accounts, and therefore runs only if CI is set.
param([string] $Out = '')
$ErrorActionPreference = 'Stop'
if (-not $env:CI) { throw 'This changes the policy of Windows Update and accounts: it is for runners of CI only.' }
New-Item -ItemType Directory -Force 'result\verified' | Out-Null

$notes = New-Object 'Collections.Generic.List[string]'
function Invoke-Note([string] $What, [scriptblock] $Do) {
    try { & $Do; $notes.Add("$($What): done") } catch { $notes.Add("$($What): $($_.Exception.Message)") }
}
$policy = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate'
foreach ($value in 'DisableWindowsUpdateAccess', 'DoNotConnectToWindowsUpdateInternetLocations') {
    Invoke-Note "remove the policy $value" { Remove-ItemProperty -Path $policy -Name $value }
}
Invoke-Note 'allow the service wuauserv' { Set-Service -Name wuauserv -StartupType Manual }
Invoke-Note 'make sure that there is an account Administrator' {
    if (-not (Get-LocalUser | Where-Object { $_.Name -eq 'Administrator' })) {
        $password = ConvertTo-SecureString "$([Guid]::NewGuid())aA1!" -AsPlainText -Force
        New-LocalUser -Name Administrator -Password $password | Out-Null
        Add-LocalGroupMember -SID S-1-5-32-544 -Member Administrator
    }
}
Invoke-Note 'start the service docker' { Start-Service -Name docker }
$notes

$record = [ordered]@{
    notes = $notes
    windows = @(Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion' | ForEach-Object { "$($_.ProductName) $($_.CurrentBuild).$($_.UBR)" })
    features = @(Get-WindowsOptionalFeature -Online | Where-Object FeatureName -match 'Containers|Hyper-V' | ForEach-Object { "$($_.FeatureName) $($_.State)" })
    services = @(Get-Service -Name 'hns', 'vfpext', 'sshd', 'docker', 'containerd', 'WinDefend' -ErrorAction SilentlyContinue | ForEach-Object { "$($_.Name) $($_.Status) $($_.StartType)" })
}
if ($Out) { [IO.File]::WriteAllText((Join-Path (Get-Location) $Out), (ConvertTo-Json $record)) }
