import { runCasesOnMysql } from '../stores/mysql/conformance.js'

runCasesOnMysql('mysql2', 'MariaDB through mysql2', { part: 0, of: 9 }, { part: 1, of: 11 })
