# Executes the user data on this machine, which must be disposable, and logs in over SSH as the operator does. The
# results contain an answer for each question. The script has not been run on Windows yet (docs/verified.md).
#
#   userdata-live.ps1 [-Checkout DIRECTORY] [-Script none.ps1] [-Out FILE.json] [-Witness 'COMMAND LINE OF witness.exe']
#
# Exit status 1: an answer contradicts a requirement of the operator.
#
# The script changes the account Administrator, sshd and the firewall, and therefore runs only if CI is set, or with
# -Consent.
# hack/powershell/real_test.go compares this script with the user data.
param([string] $Checkout = '.', [string] $Script = 'none.ps1', [string] $Out = '', [string] $Address = '127.0.0.1', [int] $Port = 22, [string] $Witness = '', [switch] $Consent)
$ErrorActionPreference = 'Stop'
if (-not $Consent -and -not $env:CI) { throw 'This changes the account Administrator, sshd and the firewall of this machine. Specify -Consent to allow it.' }
$results = New-Object 'Collections.Generic.List[object]'

# Records an answer. -Expected is a pattern that the answer must match; without a pattern, the answer is only reported.
function Add-Answer([string] $Question, $Answer, [string] $Expected = '') {
    $text = (@($Answer) | ForEach-Object { "$_".TrimEnd() }) -join "`n"
    $ok = $Expected -eq '' -or $text -match $Expected
    $results.Add([pscustomobject]@{ question = $Question; answer = $text; expected = $Expected; ok = $ok })
    '{0,-7}{1}: {2}' -f $(if ($Expected -eq '') { 'note' } elseif ($ok) { 'ok' } else { 'FAILED' }), $Question, ($text -replace "`n", ' | ')
}

# Returns the output of a program, including standard error. The exit status is in $global:LASTEXITCODE. Windows
# PowerShell 5.1 would treat a line on standard error as an error of the script.
function Invoke-Program([string] $Program, [string[]] $Arguments) {
    $ErrorActionPreference = 'Continue'
    & $Program @Arguments 2>&1 | ForEach-Object { "$_" }
}

# Answers a question. A failure does not end the script.
function Find-Answer([string] $Question, [scriptblock] $Ask, [string] $Expected = '') {
    try { Add-Answer $Question (& $Ask) $Expected } catch { Add-Answer $Question "error: $($_.Exception.Message)" $Expected }
}

# Returns the process ID of the service sshd.
function Get-SshdProcess { (Get-CimInstance -ClassName Win32_Service -Filter "Name='sshd'" -ErrorAction Stop).ProcessId }

$work = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid().ToString())
New-Item -ItemType Directory $work | Out-Null
$key = Join-Path $work 'key'
$noPassphrase = if ($PSVersionTable.PSVersion.Major -lt 6) { '""' } else { '' }
Invoke-Program 'ssh-keygen' @('-q', '-t', 'ed25519', '-N', $noPassphrase, '-C', 'test', '-f', $key)
if (-not (Test-Path -LiteralPath "$key.pub")) { throw 'ssh-keygen made no key' }
if ($PSVersionTable.PSVersion.Major -lt 6) { Invoke-Program 'icacls' @($key, '/inheritance:r', '/grant:r', "$($env:USERNAME):R") | Out-Null }
$public = (([IO.File]::ReadAllText("$key.pub") -split ' ')[0..1]) -join ' '

# The script as a cloud provides it, with the new key instead of the key of the tests.
$text = [IO.File]::ReadAllText((Join-Path $Checkout "internal/userdata/testdata/$Script"))
if ($text -match '(?s)<powershell>(.*?)</powershell>') { $text = $Matches[1] }
if ($text -notmatch "(?m)^\`$PublicKey = '([^']+)'") { throw "$Script has no public key" }
$text = $text.Replace($Matches[1], $public)
if ($text -notmatch "(?m)^\`$User = '([^']+)'") { throw "$Script has no user" }
$user = $Matches[1]
$file = Join-Path $work 'user-data.ps1'
[IO.File]::WriteAllText($file, $text)
$shell = if ($PSVersionTable.PSVersion.Major -lt 6) { 'powershell' } else { 'pwsh' }
$ssh = @('-i', $key, '-p', "$Port", '-o', 'BatchMode=yes', '-o', 'IdentitiesOnly=yes', '-o', 'StrictHostKeyChecking=no', '-o', 'ConnectTimeout=20', '-o', "UserKnownHostsFile=$(Join-Path $work 'known')")
$folder = Join-Path $env:ProgramData 'ssh'

Find-Answer 'system' { [Environment]::OSVersion.VersionString; (Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion').ProductName }
Find-Answer 'sshd before' { $s = Get-Service -Name sshd -ErrorAction SilentlyContinue; if ($s) { "$($s.Status), $($s.StartType)" } else { 'not installed' } }
Find-Answer "account $user before" { $u = Get-LocalUser -Name $user; "enabled $($u.Enabled), password required $($u.PasswordRequired)" }

# A restart of sshd is due if an earlier restart failed or the script ended before it. The next run restarts sshd only
# then.
foreach ($run in 'first', 'second', 'third') {
    if ($run -eq 'third' -and (Test-Path -LiteralPath $folder)) { [IO.File]::WriteAllText((Join-Path $folder 'sshd_config.restart'), '') }
    $watch = [Diagnostics.Stopwatch]::StartNew()
    $output = Invoke-Program $shell @('-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', $file)
    $status = $LASTEXITCODE
    Add-Answer "$run run of the user data: exit status" $status '^0$'
    Add-Answer "$run run of the user data: seconds" ([int] $watch.Elapsed.TotalSeconds)
    Add-Answer "$run run of the user data: output" $output
    $sums = Get-ChildItem $folder -File -ErrorAction SilentlyContinue | Where-Object { $_.Name -in 'sshd_config', 'administrators_authorized_keys' } | Sort-Object Name | ForEach-Object { "$($_.Name) $((Get-FileHash -LiteralPath $_.FullName).Hash)" }
    $process = Get-SshdProcess
    switch ($run) {
        'first' { $before = $sums }
        'second' {
            Add-Answer 'the second run left the files unchanged' (($sums -join ' ') -ceq ($before -join ' ')) '^True$'
            Add-Answer 'the second run did not restart sshd' ($process -eq $earlier) '^True$'
        }
        'third' { Add-Answer 'the third run restarted sshd, which was due' ($process -ne $earlier) '^True$' }
    }
    Add-Answer "$run run of the user data: a restart of sshd is still due" (Test-Path -LiteralPath (Join-Path $folder 'sshd_config.restart')) '^False$'
    $earlier = $process
}

Find-Answer 'sshd runs and starts at boot' { $s = Get-Service -Name sshd; "$($s.Status), $($s.StartType)" } '^Running, Automatic$'
Find-Answer 'sshd started after the last change of its settings' { (Get-Process -Id (Get-SshdProcess)).StartTime -ge (Get-Item -LiteralPath (Join-Path $folder 'sshd_config')).LastWriteTime } '^True$'
Find-Answer 'version of sshd' { Invoke-Program 'ssh' @('-V') }
Find-Answer 'owner and access of administrators_authorized_keys: administrators and SYSTEM only' { (Get-Acl -LiteralPath (Join-Path $folder 'administrators_authorized_keys')).Sddl } '^O:BA.*D:PA?I?(\(A;;FA;;;(BA|SY)\)){2}$'
Find-Answer 'effective settings of sshd' { Invoke-Program (Join-Path $env:SystemRoot 'System32\OpenSSH\sshd.exe') @('-T') | Where-Object { $_ -match '^(passwordauthentication|kbdinteractiveauthentication|pubkeyauthentication|authorizedkeysfile|port|listenaddress) ' } } '(?m)^passwordauthentication no$'
Find-Answer 'rule for SSH: all profiles' { Get-NetFirewallRule -Name OpenSSH-Server-In-TCP | ForEach-Object { "$($_.Enabled) $($_.Action) $($_.Profile)" } } '^True Allow Any$'
Find-Answer 'rule for 10250' { Get-NetFirewallRule -DisplayName ContainerLogsPort | ForEach-Object { "$($_.Enabled) $($_.Action) $($_.Profile) $($_.EdgeTraversalPolicy)" } } '^True Allow Any Allow$'
Find-Answer 'profile of the network' { Get-NetConnectionProfile | ForEach-Object { "$($_.InterfaceAlias) $($_.NetworkCategory)" } }

Find-Answer 'login with the key' { Invoke-Program 'ssh' ($ssh + @("$user@$Address", 'whoami')) } "(?i)$([regex]::Escape($user))\s*`$"
Find-Answer 'the session has all rights of an administrator (high integrity)' { Invoke-Program 'ssh' ($ssh + @("$user@$Address", 'whoami /groups')) | Where-Object { $_ -match 'S-1-16-|S-1-5-32-544' } } 'S-1-16-(12288|16384)'
Find-Answer 'the session may restart the machine (SeShutdownPrivilege, SeRemoteShutdownPrivilege)' { Invoke-Program 'ssh' ($ssh + @("$user@$Address", 'whoami /priv')) | Where-Object { $_ -match 'Shutdown' } } 'SeShutdownPrivilege'
Find-Answer 'shell of the session' { Invoke-Program 'ssh' ($ssh + @("$user@$Address", 'echo %COMSPEC% $PSVersionTable')) }
Find-Answer 'another key is refused, and passwords are not offered' {
    $other = Join-Path $work 'other'
    Invoke-Program 'ssh-keygen' @('-q', '-t', 'ed25519', '-N', $noPassphrase, '-C', 'other', '-f', $other)
    if ($PSVersionTable.PSVersion.Major -lt 6) { Invoke-Program 'icacls' @($other, '/inheritance:r', '/grant:r', "$($env:USERNAME):R") | Out-Null }
    $arguments = @($ssh); $arguments[1] = $other
    Invoke-Program 'ssh' ($arguments + @("$user@$Address", 'whoami')) | Where-Object { $_ -match 'denied' }
} 'Permission denied \((?!.*password)[^)]*publickey'
Find-Answer 'SFTP writes and reads a file' {
    $batch = Join-Path $work 'batch'; $local = Join-Path $work 'sent'; $back = Join-Path $work 'back'
    [IO.File]::WriteAllText($local, 'content'); [IO.File]::WriteAllText($batch, "put `"$local`" user-data-test`nget user-data-test `"$back`"`nrm user-data-test`n")
    $arguments = @($ssh); $arguments[2] = '-P'
    Invoke-Program 'sftp' (@('-b', $batch) + $arguments + @("$user@$Address")) | Out-Null
    [IO.File]::ReadAllText($back)
} '^content$'

if ($Witness) { Find-Answer 'the witness, in a session' { Invoke-Program 'ssh' ($ssh + @("$user@$Address", $Witness)) } '(?s)^(?!.*contradicted).*N1 ' }

Remove-Item -Recurse -Force $work
''
$failed = @($results | Where-Object { -not $_.ok }).Count
if ($Out) { [IO.File]::WriteAllText([IO.Path]::GetFullPath($Out), (ConvertTo-Json @{ powershell = "$($PSVersionTable.PSVersion)"; script = $Script; results = $results })) }
"$($results.Count - $failed) passed, $failed failed"
if ($failed) { exit 1 }
