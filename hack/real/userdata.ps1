# Parses the user-data scripts with PowerShell's own parser, and executes each script in a scratch directory. Functions
# replace the cmdlets that change a machine. Windows PowerShell 5.1, which runs user data, executes the scripts
# unchanged except for the two directories. Later versions of PowerShell and other systems lack some types of Windows,
# so expressions with these types are replaced there.
#
#   userdata.ps1 [-Checkout DIRECTORY] [-Out FILE.json]     exit status 1: a case failed
#
# hack/powershell/real_test.go compares this script with the user data.
param([string] $Checkout = '.', [string] $Out = '')
$ErrorActionPreference = 'Stop'
$real = $PSVersionTable.PSVersion.Major -lt 6
$results = New-Object 'Collections.Generic.List[object]'

function Add-Result([string] $Script, [string] $Case, [string] $Problem) {
    $results.Add([pscustomobject]@{ script = $Script; case = $Case; ok = $Problem -eq ''; problem = $Problem })
    '{0,-22} {1,-60} {2}' -f $Script, $Case, $(if ($Problem) { "FAILED $Problem" } else { 'ok' })
}

function Get-Body([string] $Path) {
    $text = [IO.File]::ReadAllText($Path)
    if ($text -match '(?s)<powershell>(.*?)</powershell>') { $text = $Matches[1] }
    $text
}

# Redirects the script to the scratch directory. Changed environment variables would also affect the libraries of
# Windows.
function Convert-Script([string] $Text) {
    $Text = $Text.Replace('$env:SystemRoot', '$global:TestSystemRoot').Replace('$env:ProgramData', '$global:TestProgramData')
    if (-not $real) {
        $Text = $Text.Replace('[Security.Principal.WindowsIdentity]::GetCurrent().Name', "'test'")
        $Text = [regex]::Replace($Text, '(?s)\$administrators = New-Object Security\.Principal.*?\[IO\.File\]::SetAccessControl\(\$file, \$access\)', '$global:access = $file')
        $Text = $Text.Replace("'Logs\", "'Logs/").Replace("'ssh\", "'ssh/")
    }
    $Text
}

function Limit([string] $Text) { $Text.Substring(0, [Math]::Min(120, $Text.Length)) + " ($($Text.Length))" }

# $global:loaded is the configuration that the running sshd has read. sshd reads the file only when it starts.
$standIns = @'
function Register-Call([string] $Name, $Bound) {
    $global:calls.Add("$Name $(($Bound.GetEnumerator() | Sort-Object Key | ForEach-Object { "-$($_.Key) $($_.Value)" }) -join ' ')")
    if ($global:failsOnce.Remove($Name)) { throw "$Name failed once" }
    if ($global:failsAlways -contains $Name) { throw "$Name always fails" }
}
function Get-LocalUser([string] $Name) { Register-Call Get-LocalUser $PSBoundParameters; [pscustomobject]@{ Name = $Name; Enabled = $global:enabled } }
function Set-LocalUser([string] $Name, [Security.SecureString] $Password) { Register-Call Set-LocalUser $PSBoundParameters }
function Enable-LocalUser([string] $Name) { Register-Call Enable-LocalUser $PSBoundParameters; $global:enabled = $true }
function Get-Service {
    [CmdletBinding()]
    param([string] $Name)
    Register-Call Get-Service @{ Name = $Name }
    if ($global:installed) { [pscustomobject]@{ Name = $Name } } else { Write-Error "no service $Name" }
}
function Add-WindowsCapability([switch] $Online, [string] $Name) { Register-Call Add-WindowsCapability $PSBoundParameters; $global:installed = $true }
function Set-Service([string] $Name, [string] $StartupType) { Register-Call Set-Service $PSBoundParameters }
function Start-Service([string] $Name) {
    Register-Call Start-Service $PSBoundParameters
    New-Item -ItemType Directory -Force (Join-Path $global:TestProgramData 'ssh') | Out-Null
    $file = Join-Path $global:TestProgramData 'ssh/sshd_config'
    if (-not (Test-Path -LiteralPath $file)) {
        $lines = '#Port 22', '#PasswordAuthentication yes', 'Match Group administrators', '       AuthorizedKeysFile __PROGRAMDATA__/ssh/administrators_authorized_keys', ''
        [IO.File]::WriteAllText($file, $lines -join "`r`n")
    }
    if ($null -eq $global:loaded) { $global:loaded = [IO.File]::ReadAllText($file) }
}
function Restart-Service([string] $Name) {
    Register-Call Restart-Service $PSBoundParameters
    $global:loaded = [IO.File]::ReadAllText((Join-Path $global:TestProgramData 'ssh/sshd_config'))
}
function Get-NetFirewallRule {
    [CmdletBinding()]
    param([string] $Name, [string] $DisplayName)
    if ($global:rules -contains ($Name + $DisplayName)) { $Name + $DisplayName } else { Write-Error 'no such rule' }
}
function Set-NetFirewallRule {
    [CmdletBinding()]
    param([string] $Name, $Enabled, $Action, $Profile)
    Register-Call Set-NetFirewallRule $PSBoundParameters
}
function New-NetFirewallRule {
    [CmdletBinding()]
    param([string] $Name, [string] $DisplayName, $LocalPort, $Enabled, $Direction, $Protocol, $Action, $Profile, $EdgeTraversalPolicy)
    Register-Call New-NetFirewallRule $PSBoundParameters
    $global:rules += $(if ($Name) { $Name } else { $DisplayName })
}
function Get-NetTCPConnection {
    [CmdletBinding()]
    param($State, $LocalPort)
    if ($global:listens) { 'one' } else { Write-Error 'none' }
}
function Start-Sleep($Seconds) { $global:slept += $Seconds }
'@

# Executes a script in a new scratch directory. -Before prepares the directory and the variables above. -Check returns
# problems; its arguments are the directory ssh and the error message of the last run, or ''. With -NoWait, each step is
# tried once.
function Test-Script([string] $Script, [string] $Case, [string] $Text, [scriptblock] $Before, [scriptblock] $Check, [int] $Times = 1, [switch] $NoWait) {
    $root = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid().ToString())
    $ssh = Join-Path $root 'data/ssh'
    New-Item -ItemType Directory $root, (Join-Path $root 'windows'), (Join-Path $root 'windows/Logs'), (Join-Path $root 'data') | Out-Null
    $global:TestSystemRoot = Join-Path $root 'windows'; $global:TestProgramData = Join-Path $root 'data'
    $global:enabled = $true; $global:installed = $true; $global:rules = @(); $global:listens = $true; $global:slept = 0; $global:access = ''; $global:loaded = $null
    $global:calls = New-Object 'Collections.Generic.List[string]'; $global:failsOnce = New-Object 'Collections.Generic.List[string]'; $global:failsAlways = @()
    if ($NoWait) { $Text = [regex]::Replace($Text, '(?m)^(Invoke-Step .*) \d+ \{\r?$', '$1 0 {') }
    if ($Before) { & $Before $ssh }
    foreach ($run in 1..$Times) {
        $failure = ''
        try { & ([scriptblock]::Create($standIns + "`n" + $Text)) 6>$null | Out-Null } catch { $failure = $_.Exception.Message }
    }
    Add-Result $Script $Case ((@(& $Check $ssh $failure) | Where-Object { $_ }) -join '; ')
    Remove-Item -Recurse -Force $root
}

function Write-File([string] $Folder, [string] $Name, [string] $Text, [Text.Encoding] $Encoding = (New-Object Text.UTF8Encoding $false)) {
    New-Item -ItemType Directory -Force $Folder | Out-Null
    [IO.File]::WriteAllText((Join-Path $Folder $Name), $Text, $Encoding)
}

function Get-CallCount([string] $Name) { @($global:calls -match "^$Name ").Count }

foreach ($file in Get-ChildItem (Join-Path $Checkout 'internal/userdata/testdata') -Filter *.ps1) {
    $n = $file.Name
    $tokens = $null; $errors = $null
    [void][Management.Automation.Language.Parser]::ParseInput((Get-Body $file.FullName), [ref] $tokens, [ref] $errors)
    Add-Result $n 'is PowerShell' (@($errors | ForEach-Object { "line $($_.Extent.StartLineNumber): $($_.Message)" }) -join '; ')
    $s = Convert-Script (Get-Body $file.FullName)
    if ($s -notmatch "(?m)^\`$PublicKey = '([^']+)'") { Add-Result $n 'has a key' 'none'; continue }
    $key = $Matches[1]
    $steps = @([regex]::Matches($s, '(?m)^Invoke-Step [''"](.*?)[''"] \d+ \{') | ForEach-Object { $_.Groups[1].Value })
    $keys = { param($ssh) [IO.File]::ReadAllText((Join-Path $ssh 'administrators_authorized_keys')) }
    $config = { param($ssh) [IO.File]::ReadAllText((Join-Path $ssh 'sshd_config')) }
    $ready = {
        param($ssh, $failure)
        if ($failure) { "failed: $failure"; return }
        $x = & $keys $ssh; if (-not ($x -split "`r?`n" -ccontains $key)) { "keys: $(Limit $x)" }
        $c = & $config $ssh; if ($c -cnotmatch "\APasswordAuthentication no`r?`n") { "config: $c" }
        if ($c -match '(?im)^\s*PasswordAuthentication\s*=?\s*yes') { "passwords: $c" }
        if ($global:loaded -cne $c) { "sshd runs with other settings: $(Limit "$global:loaded")" }
        if (Test-Path -LiteralPath (Join-Path $ssh 'sshd_config.restart')) { 'a restart of sshd is still due' }
        $path = Join-Path $ssh 'administrators_authorized_keys'
        if ($real) {
            $acl = Get-Acl -LiteralPath $path
            if ($acl.GetOwner([Security.Principal.SecurityIdentifier]).Value -ne 'S-1-5-32-544') { "owner: $($acl.Owner)" }
            if (-not $acl.AreAccessRulesProtected -or @($acl.Access).Count -ne 2) { "access: $($acl.Sddl)" }
        } elseif ($global:access -ne $path) { 'no access list' }
        foreach ($rule in 'OpenSSH-Server-In-TCP', 'ContainerLogsPort') { if ($global:rules -notcontains $rule) { "no rule $rule" } }
    }

    Test-Script $n 'new machine' $s -Check $ready
    Test-Script $n 'twice: the second time changes nothing' $s -Times 2 -Check {
        & $ready @args
        if ((Get-CallCount Restart-Service) -ne 1) { 'sshd restarted again' }
        if ((Get-CallCount New-NetFirewallRule) -ne 2) { 'rules made again' }
        if ((& $keys $args[0]) -cne "$key`r`n") { "keys: $(Limit (& $keys $args[0]))" }
    }
    Test-Script $n 'OpenSSH is not installed' $s { $global:installed = $false } { & $ready @args; if (-not ($global:calls -match '^Add-WindowsCapability .*OpenSSH.Server')) { 'not installed' } }
    Test-Script $n 'the account is disabled' $s { $global:enabled = $false } {
        & $ready @args
        $order = @($global:calls -match '^(Set|Enable)-LocalUser' -replace ' .*')
        if (($order -join ' ') -ne 'Set-LocalUser Enable-LocalUser') { "calls: $order" }
    }
    Test-Script $n 'another key, without a line end' $s { Write-File $args[0] administrators_authorized_keys 'ssh-rsa AAAA other' } { & $ready @args; $x = & $keys $args[0]; if ($x -cne "ssh-rsa AAAA other`r`n$key`r`n") { "keys: $(Limit $x)" } }
    Test-Script $n 'the same key with a comment' $s { Write-File $args[0] administrators_authorized_keys "$key comment`r`n" } { $x = & $keys $args[0]; if ($args[1] -or $x -cne "$key comment`r`n") { "keys: $(Limit $x) $($args[1])" } }
    Test-Script $n 'the same key in a comment only' $s { Write-File $args[0] administrators_authorized_keys "# $key`n" } { & $ready @args }
    Test-Script $n 'another key that begins like it' $s { Write-File $args[0] administrators_authorized_keys "${key}x`n" } { & $ready @args }
    Test-Script $n 'a byte order mark before the key' $s { Write-File $args[0] administrators_authorized_keys "$key`r`n" (New-Object Text.UTF8Encoding $true) } { $x = & $keys $args[0]; if ($args[1] -or ([regex]::Matches($x, [regex]::Escape($key))).Count -ne 1) { "keys: $(Limit $x) $($args[1])" } }
    Test-Script $n 'passwords allowed in three ways' $s { Write-File $args[0] sshd_config "PasswordAuthentication yes`npasswordauthentication=yes`nMatch User x`n`tPasswordAuthentication yes`n" } $ready
    Test-Script $n 'the rules exist' $s { $global:rules = @('OpenSSH-Server-In-TCP', 'ContainerLogsPort') } { & $ready @args; if ($global:calls -match '^New-NetFirewallRule') { 'made again' }; if (-not ($global:calls -match '^Set-NetFirewallRule .*-Profile Any')) { 'rule for SSH not opened for all profiles' } }
    Test-Script $n 'nothing listens' $s { $global:listens = $false } { if ($args[1] -notmatch 'not ready') { "failed: $($args[1])" } } -NoWait

    # A failed restart of sshd is retried in the same run and in later runs. No run restarts sshd without need.
    Test-Script $n 'the restart fails twice in one run' $s { $global:failsOnce.Add('Restart-Service'); $global:failsOnce.Add('Restart-Service') } { & $ready @args; if ((Get-CallCount Restart-Service) -ne 3) { 'sshd was not restarted by the third try' } }
    Test-Script $n 'the restart fails, and the next run restarts sshd' $s { $global:failsOnce.Add('Restart-Service') } { & $ready @args; if ((Get-CallCount Restart-Service) -ne 2) { 'the second run did not restart sshd' } } -Times 2 -NoWait
    Test-Script $n 'the restart fails: the third run does not restart again' $s { $global:failsOnce.Add('Restart-Service') } { & $ready @args; if ((Get-CallCount Restart-Service) -ne 2) { "$(Get-CallCount Restart-Service) restarts" } } -Times 3 -NoWait
    Test-Script $n 'the script ended before it restarted sshd' $s {
        $global:loaded = "PasswordAuthentication yes`r`n"
        Write-File $args[0] sshd_config "PasswordAuthentication no`r`n"
        Write-File $args[0] sshd_config.restart ''
    } { & $ready @args; if ((Get-CallCount Restart-Service) -ne 1) { 'sshd was not restarted' } }
    Test-Script $n 'sshd rejects passwords already: no restart' $s { Write-File $args[0] sshd_config "PasswordAuthentication no`r`n" } { & $ready @args; if ((Get-CallCount Restart-Service) -ne 0) { 'sshd was restarted' } }

    foreach ($c in 'Get-LocalUser', 'Get-Service', 'Set-Service', 'Start-Service', 'Restart-Service', 'New-NetFirewallRule') {
        Test-Script $n "$c fails once" $s ([scriptblock]::Create("`$global:failsOnce.Add('$c')")) { & $ready @args; if ($c -eq 'Restart-Service' -and (Get-CallCount Restart-Service) -ne 2) { 'sshd was not restarted: it runs with its old settings' } }
        Test-Script $n "$c always fails: the rest is done, and it says so" $s ([scriptblock]::Create("`$global:failsAlways = @('$c'); Write-File `$args[0] sshd_config '#'")) {
            if ($args[1] -notmatch 'not ready') { "failed: $($args[1])" }
            $failure = $args[1]; $named = @($steps | Where-Object { $failure.Contains(($_ -split '\$User')[-1]) })
            if ($named.Count -lt 1) { "no step named: $failure" }
            if ((& $keys $args[0]) -cne "$key`r`n") { 'no key' }
        } -NoWait
    }
}
''
$failed = @($results | Where-Object { -not $_.ok }).Count
if ($Out) { [IO.File]::WriteAllText([IO.Path]::GetFullPath($Out), (ConvertTo-Json @{ powershell = "$($PSVersionTable.PSVersion)"; system = [Environment]::OSVersion.VersionString; results = $results })) }
"$($results.Count - $failed) passed, $failed failed"
if ($failed) { exit 1 }
