<powershell>
# windows-user-data 1
# user: Administrator
# public-key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPwR8Rz6xlBy/9Ow9z7Rsd/mN7N/NvVlDcHzGDFdCPgR
# ports: 22 10250
# end of header

# Prepares this machine for SSH logins of the Windows Machine Config Operator. The script contains no secrets. Each step checks the state
# before a change, so the script can run repeatedly; some platforms run it at each boot. Log: C:\Windows\Logs\windows-user-data.log

$ErrorActionPreference = 'Stop'
$User = 'Administrator'
$PublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPwR8Rz6xlBy/9Ow9z7Rsd/mN7N/NvVlDcHzGDFdCPgR'
$Log = Join-Path $env:SystemRoot 'Logs\windows-user-data.log'
$Failed = New-Object 'Collections.Generic.List[string]'

function Write-Log([string] $Message) {
    $line = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ', [Globalization.CultureInfo]::InvariantCulture) + ' ' + $Message
    Write-Host $line
    Add-Content -LiteralPath $Log -Value $line -ErrorAction SilentlyContinue
}

# Retries a step until success or timeout. Later steps run in any case: each may be the only missing step. Cmdlets that are functions of a
# module ignore the preference above and need -ErrorAction Stop.
function Invoke-Step([string] $Name, [int] $Minutes, [scriptblock] $Step) {
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while ($true) {
        try {
            & $Step | Out-Null
            Write-Log "done: $Name"
            return
        } catch {
            Write-Log "failed: ${Name}: $($_.Exception.Message)"
        }
        if ($watch.Elapsed.TotalMinutes -ge $Minutes) {
            $Failed.Add($Name)
            return
        }
        Start-Sleep -Seconds 15
    }
}

Write-Log "begin, as $([Security.Principal.WindowsIdentity]::GetCurrent().Name)"

# Some images disable the account, which also prevents logins with a key. An enabled account needs a password: a random one, not stored.
Invoke-Step "account $User is enabled" 1 {
    if (-not (Get-LocalUser -Name $User).Enabled) {
        $random = New-Object byte[] 48
        [Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($random)
        $password = ConvertTo-SecureString -String ([Convert]::ToBase64String($random) + 'aA1!') -AsPlainText -Force
        Set-LocalUser -Name $User -Password $password
        Enable-LocalUser -Name $User
    }
}

# Windows downloads the capability from Windows Update, which may fail for some minutes after the first boot.
Invoke-Step 'the OpenSSH server is installed' 20 {
    if (-not (Get-Service -Name sshd -ErrorAction SilentlyContinue)) {
        Add-WindowsCapability -Online -Name 'OpenSSH.Server~~~~0.0.1.0'
        Get-Service -Name sshd
    }
}

# The first start creates the directory of the next steps, with the correct permissions, and the host keys.
Invoke-Step 'the service sshd runs and starts at boot' 2 {
    Set-Service -Name sshd -StartupType Automatic
    Start-Service -Name sshd
}

# The operator logs in with a key, so passwords are not needed. sshd uses the first value of a setting: the line is inserted at the top,
# before any Include. All other values, in comments and Match sections, are set too. sshd reads the file only at its start: a marker file
# records a pending restart from before the change until sshd has restarted, so that a failed restart is retried. The start time of sshd is
# no alternative, because the clock of a new machine may still change.
Invoke-Step 'sshd rejects passwords' 1 {
    $file = Join-Path $env:ProgramData 'ssh\sshd_config'
    $due = Join-Path $env:ProgramData 'ssh\sshd_config.restart'
    $line = 'PasswordAuthentication no'
    $text = [IO.File]::ReadAllText($file)
    $changed = [regex]::Replace($text, '(?im)^[ \t]*#?[ \t]*PasswordAuthentication\b[^\r\n]*', $line)
    if (-not $changed.StartsWith($line, [StringComparison]::Ordinal)) { $changed = "$line`r`n$changed" }
    if ($changed -cne $text) {
        [IO.File]::WriteAllText($due, '')
        [IO.File]::WriteAllText($file, $changed)
    }
    if ([IO.File]::Exists($due)) {
        Restart-Service -Name sshd
        [IO.File]::Delete($due)
    }
}

# For members of the group Administrators, sshd reads this file instead of the file in the profile. sshd rejects a file that other users
# can write. The groups are specified by SID, because their names depend on the language. Other keys are kept.
Invoke-Step 'the public key is authorized' 1 {
    $file = Join-Path $env:ProgramData 'ssh\administrators_authorized_keys'
    $text = ''
    if (Test-Path -LiteralPath $file) { $text = [IO.File]::ReadAllText($file) }
    $known = $text -split "`n" | ForEach-Object { $_.Trim() } | Where-Object { $_ -ceq $PublicKey -or $_.StartsWith("$PublicKey ", [StringComparison]::Ordinal) }
    if (-not $known) {
        if ($text -ne '' -and -not $text.EndsWith("`n")) { $PublicKey = "`r`n$PublicKey" }
        [IO.File]::AppendAllText($file, "$PublicKey`r`n")
    }
    $administrators = New-Object Security.Principal.SecurityIdentifier 'S-1-5-32-544'
    $system = New-Object Security.Principal.SecurityIdentifier 'S-1-5-18'
    $access = New-Object Security.AccessControl.FileSecurity
    $access.SetOwner($administrators)
    $access.SetAccessRuleProtection($true, $false)
    foreach ($group in $administrators, $system) {
        $access.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule $group, 'FullControl', 'Allow'))
    }
    [IO.File]::SetAccessControl($file, $access)
}

# On Windows Server 2025 this rule applies to private networks only. Windows treats the network of a cloud as public.
Invoke-Step 'TCP port 22 is open' 1 {
    if (Get-NetFirewallRule -Name OpenSSH-Server-In-TCP -ErrorAction SilentlyContinue) {
        Set-NetFirewallRule -Name OpenSSH-Server-In-TCP -Enabled True -Action Allow -Profile Any -ErrorAction Stop
    } else {
        New-NetFirewallRule -Name OpenSSH-Server-In-TCP -DisplayName 'OpenSSH SSH Server (sshd)' -LocalPort 22 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -Profile Any -ErrorAction Stop
    }
}

# For oc logs and oc exec. A rule without a profile applies to all profiles.
Invoke-Step 'TCP port 10250 is open' 1 {
    if (-not (Get-NetFirewallRule -DisplayName ContainerLogsPort -ErrorAction SilentlyContinue)) {
        New-NetFirewallRule -DisplayName ContainerLogsPort -LocalPort 10250 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -EdgeTraversalPolicy Allow -ErrorAction Stop
    }
}

Invoke-Step 'sshd listens on TCP port 22' 1 {
    if (-not (Get-NetTCPConnection -State Listen -LocalPort 22 -ErrorAction SilentlyContinue)) {
        throw "no program listens on TCP port 22; see Port and ListenAddress in $env:ProgramData\ssh\sshd_config"
    }
}

if ($Failed.Count -gt 0) {
    throw "This machine is not ready for the operator: these steps failed, see ${Log}: $($Failed -join '; ')"
}
Write-Log 'the operator can log in'
</powershell>
<persist>true</persist>
